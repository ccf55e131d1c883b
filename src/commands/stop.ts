import { type Command, postNotice } from "./command.ts";

const NOTHING = "I'm not answering anything here. An image I'm creating has its own Stop button.";

/**
 * `/stop`, or the word alone. `accept` stops a running answer on arrival, so this command runs only if no answer was
 * running.
 */
export const STOP: Command = {
  name: "stop",
  description: "Stop the answer that I'm writing here.",
  fields: [],
  create: () => (event, sink, signal) => postNotice(sink, event, NOTHING, signal),
};
