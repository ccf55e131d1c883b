import { findModel, nearModels } from "../models/model-list.ts";
import type { Models } from "../policy/models.ts";
import type { ListModels } from "../port/catalogue.ts";
import type { CommandEvent } from "../port/events.ts";
import { describeOptions } from "../settings/answer-options.ts";
import type { ChannelSettings, Settings } from "../settings/settings.ts";
import { quoteName } from "../text/quote-name.ts";
import { OPTIONS_HINT, readAnswerOptions } from "./answer-options.ts";
import { type Command, NOT_KEPT, NOT_KNOWN, postNotice, type SettingsRights } from "./command.ts";

const RESET = /^(default|reset)$/i;
/** Longest list of names, so that platforms take it as one message. */
const MAX_LIST_CHARS = 1_200;
const NO_LIST = "I could not get a list of models from the AI service";

export interface ModelCommandDeps extends SettingsRights {
  settings: Pick<Settings, "read" | "setModel" | "setOptions">;
  listModels: ListModels;
  models: Pick<Models, "isOffered" | "usual">;
}

/** `/model`: shows or sets the model of the channel and the options of its answers. */
export function createModelCommand({ settings, listModels, models, access, audit }: ModelCommandDeps): Command {
  /** Those that are offered to this person in this place; undefined when there is no list. */
  async function listOffered(event: CommandEvent, signal: AbortSignal): Promise<readonly string[] | undefined> {
    const listed = await tryList(listModels, signal);
    const usual = models.usual(event);
    return listed && [...new Set([usual, ...listed])].filter((name) => models.isOffered(name, event));
  }

  async function show(event: CommandEvent, signal: AbortSignal): Promise<string> {
    const [channel, offered] = await Promise.all([settings.read(event.reply), listOffered(event, signal)]);
    if (!channel.isKnown) return NOT_KNOWN;
    const model = models.usual(event);
    const own = channel.model && `, chosen here; \`/model default\` goes back to ${quoteName(model)}`;
    const how = describeOptions(channel.options);
    const inUse = `The model here is ${quoteName(channel.model ?? model)}${own ?? ""}.${how && ` It answers ${how}.`}`;
    if (offered === undefined) return `${inUse} ${NO_LIST}. ${OPTIONS_HINT}`;
    return `${inUse} You can choose from ${describeList(offered)}: \`/model\` and the name. ${OPTIONS_HINT}`;
  }

  /** Undefined for a model that was set. */
  async function set(event: CommandEvent, name: string, signal: AbortSignal): Promise<string | undefined> {
    const offered = await listOffered(event, signal);
    if (offered === undefined) return `${NO_LIST}, so I changed nothing. Try again in a minute.`;
    const found = findModel(name, offered);
    if (found === undefined) return describeUnknown(name, offered);
    const refusal = await access.findRefusal(event, `model:${found}`);
    if (refusal !== undefined) return refusal;
    return (await settings.setModel(event.reply, found)) ? undefined : NOT_KEPT;
  }

  async function reset({ reply }: CommandEvent): Promise<string | undefined> {
    const isDone = await Promise.all([settings.setModel(reply, undefined), settings.setOptions(reply, undefined)]);
    return isDone.includes(false) ? NOT_KEPT : undefined;
  }

  async function describeNew(event: CommandEvent): Promise<string> {
    const { model: own, options, isKnown } = await settings.read(event.reply);
    if (!isKnown) return NOT_KNOWN;
    const model = models.usual(event);
    const how = describeOptions(options);
    const inUse = `From the next message on I answer here with ${quoteName(own ?? model)}`;
    if (own === undefined && how === "") return `${inUse}, as configured.`;
    const back = own === undefined ? "all as configured" : quoteName(model);
    return `${inUse}${how && `, ${how}`}. \`/model default\` goes back to ${back}.`;
  }

  async function change(event: CommandEvent, signal: AbortSignal): Promise<string> {
    const { rest, changes, problems } = readAnswerOptions(event.text);
    if (problems.length > 0) return `I changed nothing: ${problems.join("; ")}.`;
    const name = toName(rest);
    const failed = name !== "" && (await (RESET.test(name) ? reset(event) : set(event, name, signal)));
    if (failed) return failed;
    const hasOptions = Object.keys(changes).length > 0;
    if (hasOptions && !(await settings.setOptions(event.reply, changes))) return NOT_KEPT;
    return describeNew(event);
  }

  return {
    name: "model",
    description: "Says which model answers in this channel and how, or sets it: a name, options, or default.",
    async run(event, sink, signal) {
      const answer = async () => {
        if (toName(event.text) === "") return show(event, signal);
        const refusal = await access.findRefusal(event, "settings");
        if (refusal !== undefined) return refusal;
        const before = describeSettings(await settings.read(event.reply));
        const said = await change(event, signal);
        await audit.note({ event, what: "model", before, after: describeSettings(await settings.read(event.reply)) });
        return said;
      };
      await postNotice(sink, event, await answer(), signal);
    },
  };
}

/** Describes the settings for the log of changes; undefined: all as configured. */
function describeSettings({ model, options }: ChannelSettings): string | undefined {
  return [model, describeOptions(options)].filter(Boolean).join(" ") || undefined;
}

/** People copy a name together with the marks around it. */
function toName(text: string): string {
  const fromStart = text.trim().replace(/^[`"'<]+/, "");
  // It begins where the marks begin: a search from each of thousands of them would take seconds.
  return fromStart.replace(/(?<![`"'>])[`"'>]+$/, "");
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
  return `The AI service has no model ${quoteName(name)} for conversations${hint}`;
}
