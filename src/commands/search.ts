import { SearchProblem } from "../port/errors.ts";
import { describeForPeople } from "../search/describe.ts";
import { createSearchMessages } from "../search/search.ts";
import { type Command, postNotice } from "./command.ts";

const MAX_HITS = 8;
const MAX_WORDS_CHARS = 500;
const HOW = "Write what to search for after the command: `/search release date`.";

/** `/search words`: lists matching messages. Shows only messages that every reader of the answer can open. */
export const SEARCH: Command = {
  name: "search",
  description: "Search the messages you have access to.",
  usage: "words to search for",
  create({ adapterOf, access }) {
    const search = createSearchMessages({ adapterOf });
    return async (event, sink, signal) => {
      const answer = async () => {
        const words = event.text.trim();
        if (words === "" || words.length > MAX_WORDS_CHARS) return HOW;
        const refusal = await access.findRefusal(event, "tool:search_messages");
        if (refusal !== undefined) return refusal;
        try {
          return describeForPeople(await search(words, MAX_HITS, event, signal), sink.limits);
        } catch (error) {
          if (error instanceof SearchProblem) return error.message;
          throw error;
        }
      };
      await postNotice(sink, event, await answer(), signal);
    };
  },
};
