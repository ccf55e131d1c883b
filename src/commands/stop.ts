import { type Command, postNotice } from "./command.ts";

/**
 * `/stop`, or the word alone: ends the answer that is being written. That is done as soon as it is said; it comes to the
 * command only where there was no answer to end.
 */
export function createStopCommand(): Command {
  return {
    name: "stop",
    description: "Ends the answer that I am writing here.",
    async run(event, sink, signal) {
      const text = "There is no answer of mine to stop here. A picture that is being drawn has a Stop of its own.";
      await postNotice(sink, event, text, signal);
    },
  };
}
