//! Why there is nobody who could run a service of this user, and what to do instead.

use relay_core::Lang;

use crate::words::service as say;

/// What is known of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// The service manager of this user answers.
    pub answers: bool,
    /// The machine was started by systemd.
    pub is_booted: bool,
    /// It is a Linux within Windows.
    pub is_wsl: bool,
    /// It is a container.
    pub is_container: bool,
}

/// Why it cannot be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// No service manager is known on this system.
    System,
    /// WSL was started without systemd.
    Wsl,
    /// A container has one process, and no service manager.
    Container,
    /// A Linux with another service manager.
    NoSystemd,
    /// systemd is there, and this user has no manager: a session of `su` or `sudo`.
    NoUserManager,
}

impl Obstacle {
    /// What is in the way on a Linux, if anything is.
    #[must_use]
    pub const fn on_linux(facts: Facts) -> Option<Self> {
        match facts {
            Facts { answers: true, .. } => None,
            Facts { is_booted: true, .. } => Some(Self::NoUserManager),
            Facts { is_wsl: true, .. } => Some(Self::Wsl),
            Facts { is_container: true, .. } => Some(Self::Container),
            Facts { .. } => Some(Self::NoSystemd),
        }
    }

    /// What is said about it.
    #[must_use]
    pub fn words(self, lang: Lang) -> String {
        match self {
            Self::System => say::no_manager_here(lang),
            Self::Wsl => say::wsl_without_systemd(lang),
            Self::Container => say::in_container(lang),
            Self::NoSystemd => say::no_systemd(lang),
            Self::NoUserManager => say::no_user_manager(lang),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_hears_what_is_in_its_way() {
        let none = Facts::default();
        let rows = [
            (Facts { answers: true, is_container: true, ..none }, None),
            (Facts { is_booted: true, is_wsl: true, ..none }, Some(Obstacle::NoUserManager)),
            (Facts { is_wsl: true, is_container: true, ..none }, Some(Obstacle::Wsl)),
            (Facts { is_container: true, ..none }, Some(Obstacle::Container)),
            (none, Some(Obstacle::NoSystemd)),
        ];
        for (facts, obstacle) in rows {
            assert_eq!(Obstacle::on_linux(facts), obstacle, "{facts:?}");
        }
        let all = [
            Obstacle::System,
            Obstacle::Wsl,
            Obstacle::Container,
            Obstacle::NoSystemd,
            Obstacle::NoUserManager,
        ];
        for words in all.iter().flat_map(|it| Lang::ALL.map(|lang| it.words(lang))) {
            assert!(["\nhint: ", "\n提示："].iter().any(|hint| words.contains(hint)), "{words}");
        }
    }
}
