//! What people are told, in the languages they read: one table of messages, each in every language.
//!
//! A table is written with [`words!`](crate::words!): a message is a function that takes the language and what is to be
//! filled in. The compiler sees to it that every message has every language and that what is filled in exists; the
//! tests of a table see to the rest ([`Table::flaws`]).

/// A language that messages are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Lang {
    /// English.
    #[default]
    English,
    /// Chinese, in simplified characters.
    Chinese,
}

impl Lang {
    /// Every language.
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// The short name, as in `--lang` and in the HTML attribute of that name.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// The language of a code or a locale: `zh`, `zh-CN`, `zh_CN.UTF-8`, `en_GB`; the locales `C` and `POSIX` are
    /// English. `None`: one that there are no messages in.
    #[must_use]
    pub fn of(locale: &str) -> Option<Self> {
        let name = locale.split(['_', '-', '.', '@']).next().unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "zh" => Some(Self::Chinese),
            "en" | "c" | "posix" => Some(Self::English),
            _ => None,
        }
    }
}

/// The messages of one part of the program, as they are written: for tests, and for whoever translates.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// What it belongs to.
    pub name: &'static str,
    /// The messages.
    pub rows: &'static [Row],
}

/// One message, with `{…}` for what is filled in.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// In English.
    pub english: &'static str,
    /// In Chinese.
    pub chinese: &'static str,
}

impl Table {
    /// What is wrong with its texts, a line each: a message that is empty, one whose Chinese is its English, and one
    /// that says more lines in one language than in the other. A message without a letter is none of these.
    #[must_use]
    pub fn flaws(&self) -> Vec<String> {
        let flaw = |row: &Row| {
            let lines = |text: &str| text.lines().count();
            // One without a word of its own has the marks of the language at least.
            let is_chinese = |sign| matches!(sign, '\u{4e00}'..='\u{9fff}' | '\u{3000}'..='\u{303f}' | '\u{ff01}'..='\u{ff5e}');
            let has_chinese = row.chinese.chars().any(is_chinese);
            if row.english.trim().is_empty() || row.chinese.trim().is_empty() {
                return Some("is empty");
            }
            if !has_chinese {
                return Some("has no Chinese");
            }
            (lines(row.english) != lines(row.chinese)).then_some("has not as many lines in both languages")
        };
        let say = |row: &Row| Some(format!("{}::{} {}", self.name, row.name, flaw(row)?));
        self.rows.iter().filter_map(say).collect()
    }
}

/// A count with its noun, for English.
#[must_use]
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Writes a table of messages. Each becomes a function that takes the language and the values in their order; more
/// values can be made for one language behind its text.
///
/// ```
/// use relay_core::words::{Lang, counted};
/// relay_core::words! {
///     table TABLE "example";
///     /// How many calls were saved.
///     saved(calls: u64) {
///         en: "{calls} saved", calls = counted(calls, "call", "calls");
///         zh: "挽回了 {calls} 次请求";
///     }
/// }
/// assert_eq!(saved(Lang::English, 1), "1 call saved");
/// assert_eq!(saved(Lang::Chinese, 2), "挽回了 2 次请求");
/// assert_eq!(TABLE.flaws(), [""; 0]);
/// ```
#[macro_export]
macro_rules! words {
    (
        table TABLE $title:literal;
        $(
            $(#[$doc:meta])*
            $name:ident($($value:ident: $kind:ty),* $(,)?) {
                en: $english:literal $(, $english_value:ident = $english_made:expr)*;
                zh: $chinese:literal $(, $chinese_value:ident = $chinese_made:expr)*;
            }
        )*
    ) => {
        /// The messages of this file.
        pub const TABLE: $crate::words::Table = $crate::words::Table {
            name: $title,
            rows: &[$($crate::words::Row {
                name: stringify!($name),
                english: $english,
                chinese: $chinese,
            }),*],
        };
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(lang: $crate::words::Lang $(, $value: $kind)*) -> String {
                match lang {
                    $crate::words::Lang::English => format!($english $(, $english_value = $english_made)*),
                    $crate::words::Lang::Chinese => format!($chinese $(, $chinese_value = $chinese_made)*),
                }
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_are_told_by_their_beginning() {
        let rows = [
            ("zh", Some(Lang::Chinese)),
            ("zh_CN.UTF-8", Some(Lang::Chinese)),
            ("zh-Hant-TW", Some(Lang::Chinese)),
            ("ZH", Some(Lang::Chinese)),
            ("en_GB.UTF-8", Some(Lang::English)),
            ("C.UTF-8", Some(Lang::English)),
            ("POSIX", Some(Lang::English)),
            ("de_DE", None),
            ("zhuang", None),
            ("", None),
        ];
        for (locale, lang) in rows {
            assert_eq!(Lang::of(locale), lang, "{locale}");
        }
        assert_eq!(Lang::ALL.map(|lang| Lang::of(lang.code())), Lang::ALL.map(Some));
    }

    #[test]
    fn flaws_are_found() {
        const ROWS: &[Row] = &[
            Row { name: "good", english: "one\ntwo", chinese: "一\n二" },
            Row { name: "same", english: "one", chinese: "one" },
            Row { name: "empty", english: "one", chinese: " " },
            Row { name: "short", english: "one\ntwo", chinese: "一" },
        ];
        let flaws = Table { name: "t", rows: ROWS }.flaws();
        let expected = [
            "t::same has no Chinese",
            "t::empty is empty",
            "t::short has not as many lines in both languages",
        ];
        assert_eq!(flaws, expected);
    }
}
