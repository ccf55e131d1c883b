import { findModel, nearModels } from "../gateway/model-list.ts";
import type { ListModels } from "../port/catalogue.ts";
import type { CommandEvent } from "../port/events.ts";
import type { Settings } from "../settings/settings.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Command, mayConfigure, NOT_ALLOWED, NOT_KEPT, NOT_KNOWN, postNotice } from "./command.ts";

const RESET = /^(default|reset)$/i;
/** Longest list of names, so that platforms take it as one message. */
const MAX_LIST_CHARS = 1_200;
const NO_LIST = "The gateway does not tell me its models at the moment";

export interface ModelCommandDeps {
  settings: Pick<Settings, "read" | "setModel">;
  listModels: ListModels;
  /** The configured one. */
  model: string;
}

/** `/model`: says which model answers in this channel, and sets another one or the configured one again. */
export function createModelCommand({ settings, listModels, model }: ModelCommandDeps): Command {
  async function show({ reply }: CommandEvent, signal: AbortSignal): Promise<string> {
    const [channel, models] = await Promise.all([settings.read(reply), tryList(listModels, signal)]);
    if (!channel.isKnown) return NOT_KNOWN;
    const own = channel.model && `, chosen here; \`/model default\` goes back to ${quoteName(model)}`;
    const inUse = `The model here is ${quoteName(channel.model ?? model)}${own ?? ""}.`;
    if (models === undefined) return `${inUse} ${NO_LIST}.`;
    return `${inUse} You can choose from ${describeList(models)}: \`/model\` and the name.`;
  }

  async function set({ reply, text }: CommandEvent, signal: AbortSignal): Promise<string> {
    const name = toName(text);
    const models = await tryList(listModels, signal);
    if (models === undefined) return `${NO_LIST}, so nothing was changed. Try again in a minute.`;
    const found = findModel(name, models);
    if (found === undefined) return describeUnknown(name, models);
    if (!(await settings.setModel(reply, found))) return NOT_KEPT;
    return `From the next message on I answer here with ${quoteName(found)}. \`/model default\` goes back to ${quoteName(model)}.`;
  }

  async function reset({ reply }: CommandEvent): Promise<string> {
    if (!(await settings.setModel(reply, undefined))) return NOT_KEPT;
    return `From the next message on I answer here with ${quoteName(model)}, as configured.`;
  }

  return {
    name: "model",
    description: "Says which model answers in this channel, or sets it: a name, or default.",
    async run(event, sink, signal) {
      const name = toName(event.text);
      const answer = () => {
        if (name === "") return show(event, signal);
        if (!mayConfigure(event.author)) return NOT_ALLOWED;
        return RESET.test(name) ? reset(event) : set(event, signal);
      };
      await postNotice(sink, event, await answer(), signal);
    },
  };
}

/** People copy a name together with the marks around it. */
function toName(text: string): string {
  return text.trim().replace(/^[`"'<]+|[`"'>]+$/g, "");
}

/** Undefined when there is no list. Rejects with the signal's reason. */
async function tryList(listModels: ListModels, signal: AbortSignal): Promise<readonly string[] | undefined> {
  try {
    return await listModels(signal);
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

function describeList(models: readonly string[]): string {
  const shown: string[] = [];
  let chars = 0;
  for (const model of models) {
    chars += model.length + 4;
    if (chars > MAX_LIST_CHARS) break;
    shown.push(quoteName(model));
  }
  const rest = models.length - shown.length;
  return shown.join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

function describeUnknown(name: string, models: readonly string[]): string {
  const near = nearModels(name, models).map(quoteName);
  const hint = near.length > 0 ? `: did you mean ${near.join(" or ")}?` : "; `/model` lists those there are.";
  return `The gateway offers no model ${quoteName(name)} for conversations${hint}`;
}
