import { joinSources, type Source, toSource } from "../text/sources.ts";
import { isRecord } from "./json.ts";

/** At most this many citations of one chunk are read. */
const MAX_CITATIONS = 100;

/**
 * Reads the pages that a chunk or a whole answer cites. OpenAI and OpenRouter put `annotations` into the delta, the
 * message or the choice. Perplexity and xAI put `citations` and `search_results` next to the choices, and their text
 * cites them by number.
 */
export function readCitations(chunk: Readonly<Record<string, unknown>>): Source[] {
  const [choice] = listOf(chunk.choices);
  const delta = isRecord(choice) ? (choice.delta ?? choice.message) : undefined;
  const places = [chunk, choice, delta].filter(isRecord);
  // Almost all chunks take this shortcut.
  if (places.every(hasNone)) return [];
  return joinSources(
    ...places.flatMap(({ annotations, citations, search_results: results }) => [
      listOf(annotations).flatMap(readAnnotation),
      readList(citations, true),
      readList(results, !citations),
    ]),
  );
}

function hasNone({ annotations, citations, search_results: results }: Record<string, unknown>): boolean {
  return !annotations && !citations && !results;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_CITATIONS) : [];
}

/** Some gateways leave out the inner object. The ranges are not read, because vendors count them in different units. */
function readAnnotation(annotation: unknown): Source[] {
  if (!isRecord(annotation) || annotation.type !== "url_citation") return [];
  const { url, title } = isRecord(annotation.url_citation) ? annotation.url_citation : annotation;
  const source = toSource(url, title);
  return source === undefined ? [] : [{ ...source, marks: [] }];
}

/** Reads a list of addresses, or of objects with address and title. `isNumbered`: the text cites them by position. */
function readList(list: unknown, isNumbered: boolean): Source[] {
  return listOf(list).flatMap((item, index): Source[] => {
    const { url, title } = isRecord(item) ? item : { url: item };
    const source = toSource(url, title);
    return source === undefined ? [] : [{ ...source, ...(isNumbered && { marks: [index + 1] }) }];
  });
}
