import type { Imagine } from "../imagine/imagine.ts";
import { type Command, postNotice } from "./command.ts";

/** `/imagine`: draws what is asked for, for everybody to see; only what cannot be drawn is told the author alone. */
export function createImagineCommand(imagine: Pick<Imagine, "request">): Command {
  return {
    name: "imagine",
    description:
      "Draws a picture from words and attached pictures: `/imagine a lighthouse at dusk --ar 16:9 --count 2`.",
    boundsItself: true,
    async run(event, sink, signal) {
      const refusal = await imagine.request(event, signal);
      if (refusal !== undefined) await postNotice(sink, event, refusal, signal);
    },
  };
}
