//! Tables and JSON rows, to the letter.

use thalweg_measure::statistics::{Better, Interval, paired_ratio};
use thalweg_measure::table::{Cell, Comparison, Measurement, Nanoseconds, Table};

#[test]
fn spans_have_three_digits_and_a_fitting_unit() {
    let cases = [
        (0.0, "0 ns"),
        (7.0, "7 ns"),
        (7.25, "7.25 ns"),
        (850.0, "850 ns"),
        (11.54, "11.5 ns"),
        (9.996, "10.0 ns"),
        (99.96, "100 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (12_345.0, "12.3 µs"),
        (999_600.0, "1.00 ms"),
        (4_000_000.0, "4.00 ms"),
        (1.5e9, "1.50 s"),
        (4.5e12, "4500 s"),
        (-2_500.0, "-2.50 µs"),
        (f64::NAN, "-"),
        (f64::INFINITY, "-"),
    ];
    for (ns, text) in cases {
        assert_eq!(Nanoseconds(ns).to_string(), text, "{ns}");
    }
    assert_eq!(format!("[{:>9}]", Nanoseconds(1e3)), "[  1.00 µs]");
}

#[test]
fn columns_are_aligned() {
    let mut table = Table::new(["placement", "rate", "p99", "note"]);
    assert!(table.is_empty());
    table.row([
        "inline".into(),
        "1M".into(),
        Nanoseconds(1_100.0).into(),
        "".into(),
    ]);
    table.row([
        "auto".into(),
        "max".into(),
        Nanoseconds(12.04).into(),
        "quiet".into(),
    ]);
    table.row(["größer".into(), String::from("2M").into()]);
    let expected = "\
placement  rate      p99  note
---------  ----  -------  -----
inline     1M    1.10 µs
auto       max   12.0 ns  quiet
größer     2M
";
    assert_eq!(table.to_string(), expected);
}

#[test]
fn numbers_become_cells() {
    let text = |text: &str| Cell::Number(text.into());
    assert_eq!(Cell::from(12_u64), text("12"));
    assert_eq!(Cell::from(12_usize), text("12"));
    assert_eq!(Cell::from(1.523), text("1.52"));
    assert_eq!(Cell::from(f64::NAN), text("-"));
    for (number, shown) in [
        (0.0, "0.00"),
        (0.94, "0.940"),
        (-0.004_12, "-0.00412"),
        (0.099_96, "0.100"),
        (0.999_6, "1.00"),
        (9.996, "10.0"),
        (99.96, "100"),
        (1e-9, "0.00000000100"),
    ] {
        assert_eq!(Cell::from(number), text(shown));
    }
    let interval = Interval {
        low: 1.2,
        value: 12.34,
        high: 123.4,
    };
    assert_eq!(Cell::from(interval), text("12.3 [1.20, 123]"));
    let few = paired_ratio(&[(1.0, 2.0); 5], Better::Lower).unwrap();
    assert_eq!(Cell::from(few), text("2.00 -"));
}

#[test]
#[should_panic(expected = "a row of 2 cells in a table of 1 columns")]
fn too_many_cells_are_refused() {
    Table::new(["one"]).row(["a".into(), "b".into()]);
}

#[test]
fn measurement_row_is_exact() {
    let keys = (["pipeline", "1M/s", "inline"], ["latency_p99", "ns"]);
    let row = Measurement::new(keys.0, keys.1, &[2.5; 6]).json();
    assert_eq!(
        row,
        r#"{"experiment":"pipeline","case":"1M/s","subject":"inline","metric":"latency_p99","#
            .to_owned()
            + r#""unit":"ns","value":2.5,"low":2.5,"high":2.5,"n":6}"#
    );
    let few = Measurement::new(keys.0, keys.1, &[7.0; 5]).json();
    assert!(
        few.ends_with(r#""value":7.0,"low":null,"high":null,"n":5}"#),
        "{few}"
    );
    let none = Measurement::new(keys.0, keys.1, &[]).json();
    assert!(
        none.ends_with(r#""value":null,"low":null,"high":null,"n":0}"#),
        "{none}"
    );
    let quoted = Measurement::new(["a\"b", "\n", ""], keys.1, &[1.0]).json();
    let value: serde_json::Value = serde_json::from_str(&quoted).unwrap();
    assert_eq!(
        (&value["experiment"], &value["case"]),
        (&"a\"b".into(), &"\n".into())
    );
}

#[test]
fn comparison_row_is_exact() {
    let keys = (["pipeline", "1M/s", "latency_p99"], ["inline", "disruptor"]);
    let pairs = [(1.0, 4.0), (2.0, 8.0)].repeat(3);
    let row = Comparison::new(keys.0, keys.1, &pairs, Better::Lower).unwrap();
    assert_eq!(
        row.json(),
        r#"{"experiment":"pipeline","case":"1M/s","metric":"latency_p99","subject":"inline","#
            .to_owned()
            + r#""versus":"disruptor","ratio":4.0,"low":4.0,"high":4.0}"#
    );
    let few = Comparison::new(keys.0, keys.1, &pairs[..5], Better::Lower).unwrap();
    let few = few.json();
    assert!(
        few.ends_with(r#""ratio":4.0,"low":null,"high":null}"#),
        "{few}"
    );
    assert_eq!(
        Comparison::new(keys.0, keys.1, &[(1.0, 0.0); 3], Better::Lower),
        None
    );
}
