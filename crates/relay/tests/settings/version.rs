//! What the program says of itself.

use serde_json::Value;

use crate::program::Home;

#[tokio::test]
async fn the_version_is_told_to_people_and_to_programs() {
    let home = Home::with_config("");
    let version = env!("CARGO_PKG_VERSION");
    for flag in ["--version", "-V"] {
        let told = home.run(&[flag]).await;
        assert_eq!(told, (0, format!("steady-relay {version}\n"), String::new()));
        let (code, told, said) = home.run(&[flag, "--json"]).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((code, said.as_str(), &told["v"], &told["version"]), (0, "", &1.into(), &version.into()));
        let features: Vec<_> =
            told["features"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(features.contains(&"top"), "{told}");
        assert_eq!(told["platform"], format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH));
        assert_eq!((&told["installed"], &told["update"]), (&"by_hand".into(), &Value::Null));
        let program = told["program"].as_str().unwrap();
        assert!(program.contains("steady-relay"), "{told}");
    }
    let (code, out, said) = home.run(&["--json"]).await;
    assert!((code, out.as_str()) == (2, "") && said.contains("--json"), "{said}");
}
