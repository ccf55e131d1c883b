import type { CommandEvent } from "../adapter.ts";
import { type Command, postNotice } from "./command.ts";

/** `/forget`: erases everything that is kept about the person who asks. `erase` resolves to the number of messages erased. */
export function createForgetCommand(erase: (event: CommandEvent) => Promise<number>): Command {
  return {
    name: "forget",
    description: "Erases everything I keep about you.",
    async run(event, sink, signal) {
      const count = await erase(event);
      const what = count === 0 ? "There was nothing left to erase." : `Erased: ${count} messages and answers.`;
      await postNotice(sink, event, `${what} I know nothing about you any more.`, signal);
    },
  };
}
