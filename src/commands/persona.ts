import type { CommandEvent } from "../port/events.ts";
import type { SinkLimits } from "../port/sink.ts";
import type { Settings } from "../settings/settings.ts";
import { findPersonaProblems, readPersona, readPrompts } from "../text/persona-fields.ts";
import { createRuler } from "../text/ruler.ts";
import { type Command, NOT_KEPT, NOT_KNOWN, postNotice, type SettingsRights, toList } from "./command.ts";

const SHOW = /^show$/i;
const RESET = /^(reset|default)$/i;
const PROMPTS = /^prompts(?::\s*|$)/i;
const SET = /^set(?:\s+|$)/i;
const UNCHANGED = "Nothing was changed.";

export interface PersonaCommandDeps extends SettingsRights {
  settings: Pick<Settings, "read" | "setPersona" | "setPrompts">;
}

/** `/persona`: shows, sets or resets the channel's persona and its suggested prompts. */
export function createPersonaCommand({ settings, access, audit }: PersonaCommandDeps): Command {
  /** Resolves to whether the change is kept. */
  async function change(event: CommandEvent, persona: string | undefined): Promise<boolean> {
    const { reply, author } = event;
    const before = (await settings.read(reply)).persona;
    if (!(await settings.setPersona(reply, persona, author.id))) return false;
    await audit.note({ event, what: "persona", before, after: persona });
    return true;
  }

  async function show({ reply }: CommandEvent, limits: SinkLimits): Promise<string> {
    const { persona, isKnown } = await settings.read(reply);
    if (!isKnown) return NOT_KNOWN;
    if (persona === undefined)
      return "I have no persona of my own here. `/persona` with a text behind it gives me one.";
    return withQuote("My persona here, which `/persona reset` takes back:", persona, limits);
  }

  async function reset(event: CommandEvent): Promise<string> {
    if (!(await change(event, undefined))) return NOT_KEPT;
    return "From the next message on I have no persona of my own here.";
  }

  async function set(event: CommandEvent, text: string, limits: SinkLimits): Promise<string> {
    const persona = readPersona(text);
    if (persona === "") return "Write what I should be after `/persona set`.";
    const problem = findPersonaProblems({ persona }).persona;
    if (problem !== undefined) return `${problem} ${UNCHANGED}`;
    if (!(await change(event, persona))) return NOT_KEPT;
    return withQuote(
      "From the next message on this is my persona here; `/persona reset` takes it back:",
      persona,
      limits,
    );
  }

  async function showPrompts({ reply }: CommandEvent): Promise<string> {
    const { prompts, isKnown } = await settings.read(reply);
    if (!isKnown) return NOT_KNOWN;
    if (prompts === undefined)
      return "I suggest the usual things here. `/persona prompts: Who is on call? | Sum up today` suggests others.";
    return `I suggest this here, which \`/persona prompts: reset\` takes back:\n${toList(prompts)}`;
  }

  async function setPrompts(event: CommandEvent, text: string): Promise<string> {
    const { reply, author } = event;
    const given = readPrompts(text);
    const prompts = RESET.test(text) ? undefined : given;
    if (given.length === 0) return showPrompts(event);
    const problem = findPersonaProblems({ prompts: text }).prompts;
    if (problem !== undefined) return `${problem} ${UNCHANGED}`;
    const before = (await settings.read(reply)).prompts?.join(" | ");
    if (!(await settings.setPrompts(reply, prompts, author.id))) return NOT_KEPT;
    await audit.note({ event, what: "prompts", before, after: prompts?.join(" | ") });
    if (prompts === undefined) return "From now on I suggest the usual things here.";
    return `From now on I suggest this in \`/help\`, and to people who open me beside this channel; \`/persona prompts: reset\` takes it back:\n${toList(prompts)}`;
  }

  /** Sets what a form brings and leaves what it shows as it was; an empty field takes its setting back. */
  async function apply(event: CommandEvent, limits: SinkLimits): Promise<string> {
    const { persona = "", prompts = "" } = event.options ?? {};
    const before = await settings.read(event.reply);
    if (!before.isKnown) return NOT_KNOWN;
    const said: string[] = [];
    if (readPersona(persona) !== (before.persona ?? "")) {
      said.push(await (readPersona(persona) === "" ? reset(event) : set(event, persona, limits)));
    }
    if (readPrompts(prompts).join("\n") !== (before.prompts ?? []).join("\n")) {
      said.push(await setPrompts(event, readPrompts(prompts).length === 0 ? "reset" : prompts));
    }
    return said.length === 0 ? UNCHANGED : said.join("\n\n");
  }

  return {
    name: "persona",
    description: "Says what I am told to be in this channel, or sets it: a text, or reset.",
    async run(event, sink, signal) {
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
    },
  };
}

/** A quote under a sentence, cut where the platform's message ends. */
function withQuote(sentence: string, text: string, limits: SinkLimits): string {
  const quote = text.replace(/^/gm, "> ");
  const reach = createRuler(quote, 0, `${sentence}\n`, limits);
  const whole = reach("");
  return `${sentence}\n${whole === quote.length ? quote : `${quote.slice(0, reach("…"))}…`}`;
}
