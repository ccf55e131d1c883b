// The vendors' ways to name the pages that an answer is based on.
import type { Accent, Answer, Fields, Sent } from "./dialect.ts";

/** The pages that every web search finds. The first page comes twice. */
const PAGES = [
  { title: "Kettles - a history", url: "https://example.com/kettles" },
  { title: "Tea", url: "https://example.org/tea?utm_source=lab" },
  { title: "Kettles - a history", url: "https://example.com/kettles" },
] as const;

const LINKED = PAGES.slice(0, 2).map(({ url }) => ` ([${new URL(url).host}](${url}))`);

function withEnding(answer: Answer, ending: string): Answer {
  return answer.content === "" ? answer : { ...answer, content: `${answer.content}${ending}` };
}

/**
 * For requests with a search: puts links into the text and sends `annotations` with the links' positions before the end
 * of the answer.
 */
export const ANNOTATIONS: Accent = {
  toAnswer: (answer, request) =>
    request["web_search_options"] === undefined ? answer : withEnding(answer, LINKED.join("")),
  toStream(stream, { content }) {
    const ending = LINKED.join("");
    if (!content.endsWith(ending)) return stream;
    const annotations = PAGES.slice(0, 2).map((page, index): Fields => {
      const end_index = content.length - (index === 0 ? (LINKED[1] ?? "").length : 0);
      const start_index = end_index - (LINKED[index] ?? "").length + 1;
      return { type: "url_citation", url_citation: { ...page, start_index, end_index } };
    });
    return beforeEnd(stream, { type: "chunk", delta: { content: "", annotations } });
  },
};

/**
 * For requests with a search: puts numbers into the text and sends a list of pages next to the choices. Every chunk
 * contains the addresses; only the last chunk contains the titles.
 */
export const NUMBERS: Accent = {
  toAnswer: (answer, request) =>
    request["web_search_options"] === undefined
      ? answer
      : withEnding(answer, PAGES.map((_, index) => `[${index + 1}]`).join("")),
  toStream: (stream) =>
    stream.map((sent): Sent => {
      if (sent.type !== "chunk") return sent;
      const results =
        sent.finish === undefined ? {} : { search_results: PAGES.map((page) => ({ ...page, date: null })) };
      return { ...sent, fields: { ...sent.fields, citations: PAGES.map(({ url }) => url), ...results } };
    }),
};

function beforeEnd(stream: readonly Sent[], more: Sent): Sent[] {
  const end = stream.findIndex((sent) => sent.type === "chunk" && sent.finish !== undefined);
  return stream.toSpliced(end === -1 ? stream.length : end, 0, more);
}
