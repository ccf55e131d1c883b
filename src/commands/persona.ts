import type { CommandEvent } from "../port/events.ts";
import type { SinkLimits } from "../port/sink.ts";
import type { Settings } from "../settings/settings.ts";
import { neutralize } from "../text/neutralize.ts";
import { createRuler } from "../text/ruler.ts";
import { type Command, mayConfigure, NOT_ALLOWED, NOT_KEPT, NOT_KNOWN, postNotice } from "./command.ts";

const SHOW = /^show$/i;
const RESET = /^(reset|default)$/i;
const SET = /^set(?:\s+|$)/i;
/** One message, on the platforms with the shortest ones, shows all of it. */
const MAX_PERSONA_CHARS = 1_500;

/** `/persona`: shows, sets or takes back what the bot is told of itself in this channel. */
export function createPersonaCommand(settings: Pick<Settings, "read" | "setPersona">): Command {
  async function show({ reply }: CommandEvent, limits: SinkLimits): Promise<string> {
    const { persona, isKnown } = await settings.read(reply);
    if (!isKnown) return NOT_KNOWN;
    if (persona === undefined)
      return "I have no persona of my own here. `/persona` with a text behind it gives me one.";
    return withQuote("My persona here, which `/persona reset` takes back:", persona, limits);
  }

  async function reset({ reply, author }: CommandEvent): Promise<string> {
    if (!(await settings.setPersona(reply, undefined, author.id))) return NOT_KEPT;
    return "From the next message on I have no persona of my own here.";
  }

  async function set({ reply, author }: CommandEvent, text: string, limits: SinkLimits): Promise<string> {
    const persona = toPersona(text);
    if (persona === "") return "Write what I should be after `/persona set`.";
    if (persona.length > MAX_PERSONA_CHARS) {
      return `A persona has at most ${MAX_PERSONA_CHARS} characters, and this has ${persona.length}. Nothing was changed.`;
    }
    if (!(await settings.setPersona(reply, persona, author.id))) return NOT_KEPT;
    return withQuote(
      "From the next message on this is my persona here; `/persona reset` takes it back:",
      persona,
      limits,
    );
  }

  return {
    name: "persona",
    description: "Says what I am told to be in this channel, or sets it: a text, or reset.",
    async run(event, sink, signal) {
      const text = event.text.trim();
      const answer = () => {
        if (text === "" || SHOW.test(text)) return show(event, sink.limits);
        if (!mayConfigure(event.author)) return NOT_ALLOWED;
        return RESET.test(text) ? reset(event) : set(event, text.replace(SET, ""), sink.limits);
      };
      await postNotice(sink, event, await answer(), signal);
    },
  };
}

/** The text without invisible characters and without needless room between its lines. */
function toPersona(text: string): string {
  return neutralize(text)
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

/** A quote under a sentence, cut where the platform's message ends. */
function withQuote(sentence: string, text: string, limits: SinkLimits): string {
  const quote = text.replace(/^/gm, "> ");
  const reach = createRuler(quote, 0, `${sentence}\n`, limits);
  const whole = reach("");
  return `${sentence}\n${whole === quote.length ? quote : `${quote.slice(0, reach("…"))}…`}`;
}
