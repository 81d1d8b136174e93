//! What is said of a command line that is not understood. In English clap says it itself.

relay_core::words! {
    table TABLE "cli";

    /// How it begins.
    error() {
        en: "error: ";
        zh: "错误：";
    }

    /// All of it. `error` and `what` are messages of this table, `more` lines of hints and the usage.
    wrong(error: &str, what: &str, more: &str) {
        en: "{error}{what}\n{more}\nFor more information, try '--help'.\n";
        zh: "{error}{what}\n{more}\n运行 '--help' 可查看更多说明。\n";
    }

    /// There is no such flag or argument.
    unexpected(word: &str) {
        en: "unexpected argument '{word}' found";
        zh: "无法识别的参数 '{word}'";
    }

    /// There is no such verb.
    no_such_verb(word: &str) {
        en: "unrecognized subcommand '{word}'";
        zh: "没有名为 '{word}' 的命令";
    }

    /// The word is no verb, but the name of a client or of a program.
    start_it(word: &str) {
        en: "  to start it with a relay: 'steady-relay run -- {word}'";
        zh: "  要经由中继启动它：'steady-relay run -- {word}'";
    }

    /// A flag lacks its value.
    lacks_value(flag: &str) {
        en: "a value is required for '{flag}' but none was supplied";
        zh: "'{flag}' 需要一个值，但没有给出";
    }

    /// A value is none that the flag takes; `why` is what the reader of the value says, in English.
    invalid(value: &str, flag: &str, why: &str) {
        en: "invalid value '{value}' for '{flag}'{why}";
        zh: "'{flag}' 的值 '{value}' 无效{why}";
    }

    /// Which values there are.
    values(values: &str) {
        en: "  [possible values: {values}]";
        zh: "  [可选值：{values}]";
    }

    /// What has to be there and is not.
    lacks(arguments: &str) {
        en: "the following required arguments were not provided: {arguments}";
        zh: "缺少必需的参数：{arguments}";
    }

    /// Two that exclude each other.
    conflict(one: &str, other: &str) {
        en: "the argument '{one}' cannot be used with '{other}'";
        zh: "参数 '{one}' 不能与 '{other}' 同时使用";
    }

    /// One that stands there twice.
    twice(flag: &str) {
        en: "the argument '{flag}' cannot be used multiple times";
        zh: "参数 '{flag}' 不能多次使用";
    }

    /// A flag that takes no value has one.
    needs_no_value(value: &str, flag: &str) {
        en: "unexpected value '{value}' for '{flag}' found; no more were expected";
        zh: "'{flag}' 不接受值 '{value}'";
    }

    /// Whatever else clap finds, in its words.
    other(what: &str) {
        en: "{what}";
        zh: "命令行无法理解：{what}";
    }

    /// What may be meant.
    near(names: &str) {
        en: "  tip: did you mean {names}?";
        zh: "  提示：是否想用 {names}？";
    }
}
