import { type Command, postNotice } from "./command.ts";

/** `/stop`, or the word alone. A running answer is ended when the event is accepted; the command runs where there is none. */
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
