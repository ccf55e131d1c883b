import { joinSources, type Source, toSource } from "../text/sources.ts";
import { isRecord } from "./json.ts";

/** Citations of one chunk; further ones are dropped. */
const MAX_CITATIONS = 100;

/**
 * The pages that a chunk or a whole answer cites: `annotations` of OpenAI and OpenRouter in the delta, the message or the
 * choice; `citations` and `search_results` of Perplexity and xAI next to the choices, which the text cites by number.
 */
export function readCitations(chunk: Readonly<Record<string, unknown>>): Source[] {
  const [choice] = listOf(chunk.choices);
  const delta = isRecord(choice) ? (choice.delta ?? choice.message) : undefined;
  const places = [chunk, choice, delta].filter(isRecord);
  // Almost all chunks end here.
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

/** Some gateways leave out the inner object. The ranges are not read: vendors count them in different units. */
function readAnnotation(annotation: unknown): Source[] {
  if (!isRecord(annotation) || annotation.type !== "url_citation") return [];
  const { url, title } = isRecord(annotation.url_citation) ? annotation.url_citation : annotation;
  const source = toSource(url, title);
  return source === undefined ? [] : [{ ...source, marks: [] }];
}

/** A list of addresses, or of objects with an address and a title. Their places can be the numbers in the text. */
function readList(list: unknown, isNumbered: boolean): Source[] {
  return listOf(list).flatMap((item, index): Source[] => {
    const { url, title } = isRecord(item) ? item : { url: item };
    const source = toSource(url, title);
    return source === undefined ? [] : [{ ...source, ...(isNumbered && { marks: [index + 1] }) }];
  });
}
