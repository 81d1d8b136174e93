//! opencode.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use relay_sim::Script;
use relay_sim::fixtures::codex::overloaded_503;

use crate::answers::{WORD, responses, script, times};
use crate::scene::{Tools, run};
use crate::{Client, Line, Ran, Via};

/// opencode with a prompt on its command line.
struct OpenCode;

/// It keeps out of what nobody can reach here, such as updates. Where there is no `$schema`, it writes one.
const SETTINGS: &str =
    "{\"$schema\": \"https://opencode.ai/config.json\", \"autoupdate\": false, \"share\": \"disabled\"}\n";

impl Client for OpenCode {
    fn furnish(&self, home: &Path) -> Result<()> {
        fs::create_dir_all(home.join(".config/opencode"))?;
        fs::write(home.join(".config/opencode/opencode.json"), SETTINGS).context("cannot write the settings")
    }

    fn line(&self, _: &Tools, _: &Path, base: Option<&str>) -> Line {
        let words = ["opencode", "run", "--title", "t", "-m", "openai/gpt-5.1", "say the word"];
        let mut env = vec![
            ("OPENAI_API_KEY", "sk-proj-test".to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ];
        env.extend(base.map(|base| ("OPENAI_BASE_URL", format!("{base}/v1"))));
        Line { words: words.map(str::to_owned).to_vec(), env }
    }
}

async fn opencode(via: Via, script: Script) -> Result<Ran> {
    run(&OpenCode, via, script).await
}

#[tokio::test]
async fn run_starts_it_with_the_providers_moved() -> Result<()> {
    for via in [Via::Run, Via::Joined] {
        let wrapped = opencode(via, script(times(2, &overloaded_503()), responses::good)).await?;
        assert_eq!(wrapped.code, Some(0), "{wrapped}");
        assert!(wrapped.out.contains(WORD), "{wrapped}");
        assert!(wrapped.sends() >= 3, "{wrapped}");
        assert!(wrapped.err.contains("recovered"), "{wrapped}");
        let settings = fs::read_to_string(wrapped.home().join(".config/opencode/opencode.json"))?;
        assert_eq!(settings, SETTINGS);
    }
    Ok(())
}
