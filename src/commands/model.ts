import { findModel, nearModels } from "../models/model-list.ts";
import type { ListModels } from "../port/catalogue.ts";
import type { CommandEvent } from "../port/events.ts";
import {
  ANSWER_OPTION_FIELDS,
  changeOptions,
  describeOptions,
  OPTIONS_HINT,
  readAnswerOptions,
} from "../settings/answer-options.ts";
import type { ChannelSettings } from "../settings/settings.ts";
import { quoteName } from "../text/quote-name.ts";
import { type Command, NOT_KEPT, NOT_KNOWN, postNotice } from "./command.ts";

const RESET = /^(default|reset)$/i;
/** A list of this length fits into one message on every platform. */
const MAX_LIST_CHARS = 1_200;
const NO_LIST = "I couldn't get the list of models from the AI service";

export const MODEL: Command = {
  name: "model",
  description: "Show or set which model answers in this channel and how: a name, options, or default.",
  usage: "a model's name, or default",
  fields: [
    {
      name: "name",
      description: "The model for this channel, or default",
      kind: "text",
      isSuggested: true,
      maxChars: 100,
    },
    ...ANSWER_OPTION_FIELDS,
  ],
  create({ settings, modelLists, models, access, audit }) {
    /** Resolves to the models that this person can choose here; undefined if the gateway returned no list. */
    async function listOffered(event: CommandEvent, signal: AbortSignal): Promise<readonly string[] | undefined> {
      const listed = await tryList(modelLists.chat, signal);
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
      return `${inUse} You can choose from ${describeList(offered)}. To choose one, write \`/model\` and its name. ${OPTIONS_HINT}`;
    }

    /** Sets the model and resolves to undefined, or resolves to a sentence that says why the model was not set. */
    async function set(event: CommandEvent, name: string, signal: AbortSignal): Promise<string | undefined> {
      const offered = await listOffered(event, signal);
      if (offered === undefined) return `${NO_LIST}, so I changed nothing. Try again in a minute.`;
      const found = findModel(name, offered);
      if (found === undefined) return describeUnknown(name, offered);
      const refusal = await access.findRefusal(event, `model:${found}`);
      if (refusal !== undefined) return refusal;
      return (await settings.set(event.reply, "model", found)) ? undefined : NOT_KEPT;
    }

    async function reset({ reply }: CommandEvent): Promise<string | undefined> {
      const isDone = await Promise.all([
        settings.set(reply, "model", undefined),
        settings.set(reply, "options", undefined),
      ]);
      return isDone.includes(false) ? NOT_KEPT : undefined;
    }

    async function describeNew(event: CommandEvent): Promise<string> {
      const { model: own, options, isKnown } = await settings.read(event.reply);
      if (!isKnown) return NOT_KNOWN;
      const model = models.usual(event);
      const how = describeOptions(options);
      const inUse = `From the next message on, I'll answer here with ${quoteName(own ?? model)}`;
      if (own === undefined && how === "") return `${inUse}, as configured.`;
      const back = own === undefined ? "the configuration" : quoteName(model);
      return `${inUse}${how && `, ${how}`}. \`/model default\` goes back to ${back}.`;
    }

    async function change(event: CommandEvent, signal: AbortSignal): Promise<string> {
      const { rest, changes, problems } = readAnswerOptions(event.text);
      if (problems.length > 0) return `I changed nothing: ${problems.join("; ")}.`;
      const name = toName(rest);
      const failed = name !== "" && (await (RESET.test(name) ? reset(event) : set(event, name, signal)));
      if (failed) return failed;
      const hasOptions = Object.keys(changes).length > 0;
      const keep = () => settings.change(event.reply, "options", (before = {}) => changeOptions(before, changes));
      if (hasOptions && !(await keep())) return NOT_KEPT;
      return describeNew(event);
    }

    return async (event, sink, signal) => {
      const answer = async () => {
        if (toName(event.text) === "") return show(event, signal);
        const refusal = await access.findRefusal(event, "settings");
        if (refusal !== undefined) return refusal;
        const before = describeSettings(await settings.read(event.reply));
        const text = await change(event, signal);
        await audit.note({ event, what: "model", before, after: describeSettings(await settings.read(event.reply)) });
        return text;
      };
      await postNotice(sink, event, await answer(), signal);
    };
  },
};

/** Describes the settings for the audit log; undefined if the channel has none. */
function describeSettings({ model, options }: ChannelSettings): string | undefined {
  return [model, describeOptions(options)].filter(Boolean).join(" ") || undefined;
}

/** Removes quotation marks around a name, because people copy them together with the name. */
function toName(text: string): string {
  const fromStart = text.trim().replace(/^[`"'<]+/, "");
  // The lookbehind keeps the search linear: without it, thousands of quotation marks take seconds.
  return fromStart.replace(/(?<![`"'>])[`"'>]+$/, "");
}

/** Resolves to undefined if the gateway returns no list. Rejects only with the signal's reason. */
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
  const hint = near.length > 0 ? `. Did you mean ${near.join(" or ")}?` : ". `/model` lists them all.";
  return `The AI service has no chat model ${quoteName(name)}${hint}`;
}
