//! Whether this is the Linux inside Windows.

/// Whether this program runs there.
pub(crate) fn in_wsl() -> bool {
    cfg!(target_os = "linux")
        && std::fs::read_to_string("/proc/sys/kernel/osrelease").is_ok_and(|release| is_wsl(&release))
}

/// Whether a kernel's name is that of the one inside Windows. A kernel that users built for it may name WSL alone.
fn is_wsl(release: &str) -> bool {
    let release = release.to_ascii_lowercase();
    release.contains("microsoft") || release.contains("wsl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linux_inside_windows_is_known() {
        for release in ["5.15.153.1-microsoft-standard-WSL2", "4.4.0-19041-Microsoft", "6.6.9-custom-WSL2+"] {
            assert!(is_wsl(release), "{release}");
        }
        assert!(!is_wsl("6.8.0-45-generic"));
    }
}
