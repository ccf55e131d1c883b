import type { Fault } from "../../../../lab/discord-sim/faults.ts";
import { COMMANDS } from "../../../../src/commands/commands.ts";
import { NO_RIGHT } from "../../../../src/port/right.ts";
import type { Button } from "../../../../src/port/sink.ts";
import { type StageOptions, startStage } from "../stage.ts";

export const CALLBACK = "POST /interactions/:interaction/:token/callback";
export const STOP: Button = { action: "stop", turnId: "turn", label: "Stop" };

/** A stage with registered commands. */
export async function startCommands(options: StageOptions = {}) {
  const stage = await startStage({ commands: COMMANDS, ...options });
  await stage.discord.until(() => stage.discord.commands().length > 0);
  return stage;
}

interface AskOptions extends StageOptions {
  isPrivate?: boolean;
  /** Breaks the acknowledgement. */
  fault?: Fault;
}

/** A stage on which Ada has used /ask, with the sink for the answer. */
export async function startAsk({ isPrivate = false, fault, ...options }: AskOptions = {}) {
  const stage = await startCommands(options);
  const { discord, channel, ada, adapter, message } = stage;
  if (fault !== undefined) discord.faults.failNext(CALLBACK, fault);
  const asked = discord.people.command(channel, ada, "ask", { prompt: "why?", private: isPrivate });
  const event = await message(0);
  return { ...stage, asked, event, reply: event.reply, sink: adapter.sink(event.reply, NO_RIGHT) };
}
