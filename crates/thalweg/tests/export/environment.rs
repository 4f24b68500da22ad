//! The variable, in processes of their own.

use std::process::Command;

use thalweg::export::ENV_VAR;
use thalweg::pipeline::{Pipeline, Placement};

use crate::export::{Directory, names};

/// Threads of this process.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a Linux system");
    tasks.count()
}

/// Says to the program that it is a child.
const CHILD: &str = "THALWEG_EXPORT_CHILD";

/// The part that the test below runs as a process of its own, since other tests make threads
/// meanwhile.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        println!("skipped: it is run by the other test, in a process of its own");
        return;
    }
    let before = threads();
    let pipeline = Pipeline::builder(64, || ())
        .observe("stage", |(), _| ())
        .placement(Placement::inline());
    let mut pipeline = pipeline.build().expect("a valid pipeline");
    pipeline.publish(|()| ()).expect("it runs");
    println!("new threads: {}", threads() - before);
    pipeline.join().expect("no stage fails");
    // It ends with the last pipeline; there is no moment at which it must have.
    while threads() > before {
        std::thread::yield_now();
    }
    println!("ended");
}

/// The child's process and what it printed.
fn run(variable: Option<&str>) -> (u32, String) {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", "export::environment::child", "--nocapture"]);
    command.env(CHILD, "1");
    match variable {
        Some(value) => command.env(ENV_VAR, value),
        None => command.env_remove(ENV_VAR),
    };
    let child = command.stdout(std::process::Stdio::piped()).spawn();
    let child = child.expect("it starts");
    let process = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    (process, String::from_utf8(output.stdout).expect("text"))
}

#[test]
#[cfg(target_os = "linux")]
fn without_the_variable_there_is_no_thread_and_no_file() {
    let directory = Directory::new();
    for variable in [None, Some("")] {
        let (_, printed) = run(variable);
        assert!(printed.contains("new threads: 0\nended\n"), "{printed}");
    }
    let path = directory.0.to_str().expect("a plain path");
    let (process, printed) = run(Some(path));
    assert!(printed.contains("new threads: 1\nended\n"), "{printed}");
    assert_eq!(names(&directory.0), [format!("{process}-1")]);
    assert_eq!(directory.only()["published"], 1);
}
