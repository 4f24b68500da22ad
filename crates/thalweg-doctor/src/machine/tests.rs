use super::values::pairs;
use super::*;

fn figure(value: f64) -> Figure {
    Figure {
        value,
        low: Some(value * 0.9),
        high: Some(value * 1.1),
        n: 31,
    }
}

/// Creates a machine with these cores and made-up costs.
fn made_up(cores: usize) -> Machine {
    let costs = [
        (Cost::Clock, 11.0),
        (Cost::Pause, 10.0),
        (Cost::HandOff, 60.0),
        (Cost::YieldPeer, 2e6),
        (Cost::Switch0, 1_500.0),
        (Cost::Switch1M, 40_000.0),
        (Cost::Wake50, 4_300.0),
        (Cost::Wake1000, 30_000.0),
        (Cost::Waker, 1_900.0),
        (Cost::Slack, 56_000.0),
        (Cost::DiskSync, 1e6),
    ];
    let numbers: Vec<usize> = (0..cores).collect();
    let pair = |(from, to)| Pair {
        from,
        to,
        figure: figure(if to < 2 { 60.0 } else { 200.0 }),
    };
    let mut machine = Machine {
        processor: Some("Example 1".to_owned()),
        clock: "processor",
        disturbance: 0.0,
        costs: costs.map(|(cost, value)| (cost, figure(value))).to_vec(),
        absent: Vec::new(),
        pairs: pairs(&numbers).into_iter().map(pair).collect(),
        pairs_all: cores * (cores - 1) / 2,
        directory: PathBuf::from("/var/lib"),
        is_memory: false,
        meaning: Vec::new(),
        cores: numbers,
    };
    machine.meaning = meaning::of(&machine);
    machine
}

#[test]
fn the_figures_say_how_long_to_spin_and_where() {
    let meaning = made_up(2).meaning;
    assert_eq!(meaning.len(), 4);
    for (line, part) in [
        (0, "spin for up to 4.30 µs (430 pauses)"),
        (0, "costs its waker 1.90 µs"),
        (1, "less than some 120 ns"),
        (
            2,
            "in 1.50 µs by sleeping (38.5 µs more with 1 MB in use each)",
        ),
        (2, "in 2.00 ms by yielding: sleep rather than yield there."),
        (3, "56.0 µs late"),
        (3, "handles 1000 a second"),
    ] {
        assert!(meaning[line].contains(part), "{part}: {}", meaning[line]);
    }
    assert!(!meaning[1].contains("apart"), "{}", meaning[1]);
    let three = &made_up(3).meaning[1];
    let apart = "Cores 0 and 1 are 60 ns apart, cores 1 and 2 200 ns";
    assert!(three.contains(apart), "{three}");
}

#[test]
fn one_core_and_a_directory_in_memory_change_the_advice() {
    let mut machine = made_up(1);
    machine.is_memory = true;
    let meaning = meaning::of(&machine);
    assert!(meaning[0].contains("do not spin"), "{meaning:?}");
    assert!(
        meaning.iter().any(|line| line.contains("in memory")),
        "{meaning:?}"
    );
    let page = machine.to_string();
    for part in [
        "Example 1, 1 usable core\n",
        "disk: /var/lib: in memory",
        "[9.90 ns, 12.1 ns]",
    ] {
        assert!(page.contains(part), "{page}");
    }
}

#[test]
fn advice_from_a_disturbed_machine_says_so_first() {
    let mut machine = made_up(2);
    machine.disturbance = 0.124;
    let meaning = meaning::of(&machine);
    assert!(
        meaning[0].contains("Do not go by what follows"),
        "{meaning:?}"
    );
    assert!(
        meaning[0].contains("others took 12 % of the cores"),
        "{meaning:?}"
    );
    assert_eq!(meaning[1..], made_up(2).meaning[..]);
    let head = "Others took 12 % of its cores meanwhile: the figures are too high.\n";
    assert!(machine.to_string().contains(head), "{machine}");
    machine.disturbance = 0.01;
    assert_eq!(meaning::of(&machine), made_up(2).meaning);
}

#[test]
fn pairs_are_all_or_those_that_show_the_shape() {
    assert_eq!(pairs(&[3]), []);
    assert_eq!(pairs(&[0, 2, 5]), [(0, 2), (0, 5), (2, 5)]);
    let many: Vec<usize> = (0..64).collect();
    let chosen = pairs(&many);
    assert_eq!(chosen.len(), 63 + 62);
    assert!(chosen.contains(&(0, 63)) && chosen.contains(&(31, 32)));
    let mut machine = made_up(64);
    assert!(machine.to_string().contains("125 of the 2016 pairs"));
    machine.pairs_all = 125;
    assert!(!machine.to_string().contains("pairs of cores"));
}

#[test]
fn this_machine_is_measured_and_said_as_json() {
    let options = Options {
        is_quick: true,
        directory: std::env::temp_dir(),
    };
    let machine = Machine::measure(&options).expect("the directory can be written to");
    for cost in [
        Cost::ClockOs,
        Cost::Pause,
        Cost::YieldAlone,
        Cost::Switch0,
        Cost::DiskSync,
    ] {
        let ns = machine.cost(cost).expect("it can be measured anywhere");
        assert!(ns > 0.0, "{}: {ns}", cost.title());
    }
    assert_eq!(
        machine.cost(Cost::Wake50).is_some(),
        machine.cores.len() > 1
    );
    let json = serde_json::to_value(&machine).expect("it serializes");
    assert_eq!(
        json["costs"]["pause"]["value"].as_f64(),
        machine.cost(Cost::Pause)
    );
    assert_eq!(
        json["cores"].as_array().map(Vec::len),
        Some(machine.cores.len())
    );
    let names = machine.costs.iter().map(|(cost, _)| cost.name());
    let mut names: Vec<&str> = names
        .chain(machine.absent.iter().map(|(cost, _)| cost.name()))
        .collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() >= 14, "{names:?}");
    let nowhere = Options {
        directory: PathBuf::from("/no/such/place"),
        ..options
    };
    let refused = Machine::measure(&nowhere).expect_err("there is no such place");
    assert!(
        refused
            .to_string()
            .starts_with("/no/such/place: cannot be written to: ")
    );
}
