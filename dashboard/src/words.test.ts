import { describe, expect, it } from "vitest";
import { preferred, Says, TABLES, type Word } from "./words";

const words = Object.keys(TABLES.en) as Word[];

describe("both languages", () => {
  it("have the same values in each sentence", () => {
    for (const word of words) {
      const values = (text: string): string => [...new Set(text.match(/%\d/g) ?? [])].sort().join();
      expect(values(TABLES.zh[word]), word).toBe(values(TABLES.en[word]));
      expect(TABLES.zh[word].trim(), word).not.toBe("");
    }
  });

  it("are said by their own letters", () => {
    const alike = words.filter((word) => TABLES.zh[word] === TABLES.en[word]);
    expect(alike).toEqual(["title"]);
  });
});

describe("the language", () => {
  it("is the first of the browser's that there is", () => {
    expect(preferred(["de-DE", "zh-Hant-TW", "en"])).toBe("zh");
    expect(preferred(["en-US", "zh-CN"])).toBe("en");
    expect(preferred(["fr"])).toBe("en");
    expect(preferred([])).toBe("en");
  });
});

describe("numbers", () => {
  const [en, zh] = [new Says("en"), new Says("zh")];

  it("are as long as they need to be", () => {
    const spans = [0, 42, 400, 4_230, 9_990, 59_400, 60_000, 134_000, 3_600_000, 3_780_000, 90_000_000, 172_800_000];
    expect(spans.map((ms) => en.span(ms))).toEqual([
      "0 s",
      "42 ms",
      "0.4 s",
      "4.2 s",
      "10 s",
      "59 s",
      "1 min",
      "2 min 14 s",
      "1 h",
      "1 h 3 min",
      "1 d 1 h",
      "2 d",
    ]);
    expect(zh.span(134_000)).toBe("2 分 14 秒");
    expect(en.span(-5)).toBe("0 s");
    expect([999, 1500, 2_340_000].map((count) => en.bytes(count))).toEqual(["999 B", "1.5 kB", "2.3 MB"]);
    expect(en.share(0.975)).toBe("97.5%");
  });

  it("stand where a sentence wants them", () => {
    expect(en.say("saved_some", 12, 4000)).toMatch(/^12 of 4,000 calls/);
    expect(zh.say("saved_some", 12, 4000)).toMatch(/^4,000 个请求中有 12 个/);
    expect(en.counted(1, "open_call", "open_calls")).toBe("1 call");
    expect(en.counted(3, "open_call", "open_calls")).toBe("3 calls");
    expect(en.named("fault", "of_a_newer_relay", "x")).toBe("x");
    expect(zh.named("fault", "at_capacity", "x")).toBe("模型容量已满");
  });
});
