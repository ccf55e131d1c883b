import type { CommandEvent } from "../port/events.ts";
import type { SinkLimits } from "../port/sink.ts";
import { findPersonaProblems, readPersona, readPrompts } from "../text/persona-fields.ts";
import { createRuler } from "../text/ruler.ts";
import { type Command, NOT_KEPT, NOT_KNOWN, postNotice, toList } from "./command.ts";

const SHOW = /^show$/i;
const RESET = /^(reset|default)$/i;
const PROMPTS = /^prompts(?::\s*|$)/i;
const SET = /^set(?:\s+|$)/i;
const UNCHANGED = "I changed nothing.";

/** `/persona` shows, sets or resets the channel's persona and its suggested prompts. */
export const PERSONA: Command = {
  name: "persona",
  description: "Show or set my persona in this channel: a description, or reset.",
  usage: "a description, or reset",
  create({ settings, access, audit }) {
    /** Resolves to true if the store accepted the change. */
    async function change(event: CommandEvent, persona: string | undefined): Promise<boolean> {
      const { reply, author } = event;
      const before = (await settings.read(reply)).persona;
      if (!(await settings.set(reply, "persona", persona, author.id))) return false;
      await audit.note({ event, what: "persona", before, after: persona });
      return true;
    }

    async function show({ reply }: CommandEvent, limits: SinkLimits): Promise<string> {
      const { persona, isKnown } = await settings.read(reply);
      if (!isKnown) return NOT_KNOWN;
      if (persona === undefined)
        return "I have no persona here. To give me one, write `/persona` followed by a description.";
      return withQuote("My persona here (`/persona reset` removes it):", persona, limits);
    }

    async function reset(event: CommandEvent): Promise<string> {
      if (!(await change(event, undefined))) return NOT_KEPT;
      return "From the next message on, I'll have no persona here.";
    }

    async function set(event: CommandEvent, text: string, limits: SinkLimits): Promise<string> {
      const persona = readPersona(text);
      if (persona === "") return "After `/persona set`, write who I should be.";
      const problem = findPersonaProblems({ persona }).persona;
      if (problem !== undefined) return `${problem} ${UNCHANGED}`;
      if (!(await change(event, persona))) return NOT_KEPT;
      return withQuote(
        "From the next message on, this is my persona here (`/persona reset` removes it):",
        persona,
        limits,
      );
    }

    async function showPrompts({ reply }: CommandEvent): Promise<string> {
      const { prompts, isKnown } = await settings.read(reply);
      if (!isKnown) return NOT_KNOWN;
      if (prompts === undefined)
        return "I suggest the usual prompts here. To suggest others, write `/persona prompts: Who is on call? | Sum up today`.";
      return `I suggest these prompts here (\`/persona prompts: reset\` removes them):\n${toList(prompts)}`;
    }

    async function setPrompts(event: CommandEvent, text: string): Promise<string> {
      const { reply, author } = event;
      const given = readPrompts(text);
      const prompts = RESET.test(text) ? undefined : given;
      if (given.length === 0) return showPrompts(event);
      const problem = findPersonaProblems({ prompts: text }).prompts;
      if (problem !== undefined) return `${problem} ${UNCHANGED}`;
      const before = (await settings.read(reply)).prompts?.join(" | ");
      if (!(await settings.set(reply, "prompts", prompts, author.id))) return NOT_KEPT;
      await audit.note({ event, what: "prompts", before, after: prompts?.join(" | ") });
      if (prompts === undefined) return "From now on, I'll suggest the usual prompts here.";
      return `From now on, I'll suggest these prompts in \`/help\` and to people who open my side panel from this channel (\`/persona prompts: reset\` removes them):\n${toList(prompts)}`;
    }

    /** Applies the fields of a form. An unchanged field changes nothing; an empty field resets its setting. */
    async function apply(event: CommandEvent, limits: SinkLimits): Promise<string> {
      const { persona = "", prompts = "" } = event.options ?? {};
      const before = await settings.read(event.reply);
      if (!before.isKnown) return NOT_KNOWN;
      const sentences: string[] = [];
      if (readPersona(persona) !== (before.persona ?? "")) {
        sentences.push(await (readPersona(persona) === "" ? reset(event) : set(event, persona, limits)));
      }
      if (readPrompts(prompts).join("\n") !== (before.prompts ?? []).join("\n")) {
        sentences.push(await setPrompts(event, readPrompts(prompts).length === 0 ? "reset" : prompts));
      }
      return sentences.length === 0 ? UNCHANGED : sentences.join("\n\n");
    }

    return async (event, sink, signal) => {
      const text = event.text.trim();
      const answer = async () => {
        if (event.options === undefined && (text === "" || SHOW.test(text))) return show(event, sink.limits);
        const wanted = PROMPTS.test(text) ? text.replace(PROMPTS, "") : undefined;
        if (wanted === "") return showPrompts(event);
        const refusal = await access.findRefusal(event, "settings");
        if (refusal !== undefined) return refusal;
        if (event.options !== undefined) return apply(event, sink.limits);
        if (wanted !== undefined) return setPrompts(event, wanted);
        return RESET.test(text) ? reset(event) : set(event, text.replace(SET, ""), sink.limits);
      };
      await postNotice(sink, event, await answer(), signal);
    };
  },
};

/** Appends a quote to a sentence. Truncates the quote so that both fit into one message. */
function withQuote(sentence: string, text: string, limits: SinkLimits): string {
  const quote = text.replace(/^/gm, "> ");
  const reach = createRuler(quote, 0, `${sentence}\n`, limits);
  const whole = reach("");
  return `${sentence}\n${whole === quote.length ? quote : `${quote.slice(0, reach("…"))}…`}`;
}
