import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { About, CommandHelp, ReadAbout } from "../../../src/port/catalogue.ts";
import type { CommandEvent, ReplyAddress } from "../../../src/port/events.ts";
import type { ReplySink } from "../../../src/port/sink.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { readExtra } from "../address.ts";
import { ApiError } from "../api/error.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM, toPersonId } from "../ids.ts";
import { escapeMarkup } from "../write/markdown.ts";
import { type HandlerResult, type Interactions, NOTHING } from "./acknowledgement.ts";
import { ASK } from "./commands.ts";
import { header, plain, remark, section, select } from "./forms.ts";
import type { ImagineForms } from "./imagine-form.ts";
import type { ButtonPayload } from "./payloads.ts";
import { type HandlerDeps, toEventBase, toName, type UserAction } from "./user-action.ts";

const PUBLISH_MS = 10_000;
const READ_MS = 3_000;
/** Longest rate limit to wait for. Meanwhile the person sees an empty page. */
const MAX_WAIT_MS = 30_000;

const HOME = "home";
export const HOME_ACTIONS = {
  model: "home_model",
  draw: "home_draw",
  export: "home_export",
  forget: "home_forget",
} as const;

const MAX_PERSONA_CHARS = 300;

export interface HomeDeps extends HandlerDeps {
  forms: ImagineForms | undefined;
  readAbout: ReadAbout | undefined;
}

const metadata = z.object({ channelId: z.string(), userId: z.string().default("") });

type HomeWorkspace = Pick<Workspace, "teamId" | "enterpriseId">;

/** The home tab: what the bot does, its commands, and the person's settings and data. */
export interface Home {
  /** Rejects if Slack refuses the page. */
  show(workspace: HomeWorkspace, userId: string, channelId: string): Promise<void>;
  /** Undefined for a button that is not on the page. */
  onButton(payload: ButtonPayload, workspace: Workspace): Promise<HandlerResult | undefined>;
}

export function createHome(deps: HomeDeps): Home {
  const { commands, listModels, forms, readAbout } = deps;

  async function show(workspace: HomeWorkspace, userId: string, channelId: string): Promise<void> {
    const signal = AbortSignal.timeout(READ_MS);
    const [models, about] = await Promise.all([
      listModels(signal).catch(() => []),
      readAbout?.({
        platform: PLATFORM,
        workspaceId: workspace.teamId,
        channelId,
        author: { id: toPersonId(workspace, userId) },
      }).catch(() => undefined),
    ]);
    const view = toHomeView({ commands, models, about, draws: forms !== undefined, channelId, userId });
    const publish = () =>
      deps.api.call(workspace.teamId, "views.publish", { user_id: userId, view }, AbortSignal.timeout(PUBLISH_MS));
    try {
      await publish();
    } catch (error) {
      const waitMs = error instanceof ApiError ? error.retryAfterMs : undefined;
      if (waitMs === undefined || waitMs > MAX_WAIT_MS) throw error;
      await sleep(waitMs, undefined, { ref: false });
      await publish();
    }
  }

  return {
    show,
    async onButton(payload, workspace) {
      const { view, user, trigger_id: trigger } = payload;
      const [element] = payload.actions;
      if (view?.callback_id !== HOME || element === undefined) return undefined;
      const { channelId, userId } = metadata.parse(JSON.parse(view.private_metadata));
      // Ignores another person's home tab, or one from an older version. Opening it redraws it.
      if (userId !== user.id) return NOTHING;
      if (element.action_id === HOME_ACTIONS.draw) {
        if (forms === undefined) return NOTHING;
        return {
          events: [],
          afterwards: () => forms.open({ workspace, person: user, channelId }, trigger, { references: [] }),
        };
      }
      const command = toCommand(element.action_id, element.selected_option?.value);
      if (command === undefined) return NOTHING;
      const name = toName("home", payload);
      const userAction: UserAction = { workspace, person: user, channelId, name, isFromHome: true };
      const base = await toEventBase(userAction, { isPrivate: true }, deps);
      const event: CommandEvent = { kind: "command", ...base, ...command };
      return { events: [event] };
    },
  };
}

/** A choice on the page works like a command in the direct conversation. */
function toCommand(actionId: string, value: string | undefined): Pick<CommandEvent, "name" | "text"> | undefined {
  if (actionId === HOME_ACTIONS.model && value !== undefined) return { name: "model", text: value };
  if (actionId === HOME_ACTIONS.export) return { name: "export", text: "" };
  if (actionId === HOME_ACTIONS.forget) return { name: "forget", text: "everything for good" };
  return undefined;
}

interface HomeFacts {
  commands: readonly CommandHelp[];
  /** Empty if the models are unknown. */
  models: readonly string[];
  about: About | undefined;
  draws: boolean;
  channelId: string;
  userId: string;
}

function toHomeView({ commands, models, about, draws, channelId, userId }: HomeFacts): Body {
  return {
    type: "home",
    callback_id: HOME,
    private_metadata: JSON.stringify({ channelId, userId }),
    blocks: [
      ...describeBot(draws),
      ...describeCommands(commands),
      ...describeOwn(models, about),
      ...describeData(about),
    ],
  };
}

function describeBot(draws: boolean): Body[] {
  const text =
    "Mention me in a channel, or write to me under *Messages*. In a thread I've joined, you don't need to mention me again. " +
    "If you edit your message while I'm answering, I start over; if you delete it, I stop.";
  return [
    header("Ask me anything"),
    section(text),
    ...(draws ? [{ type: "actions", elements: [button(HOME_ACTIONS.draw, "Create an image")] }] : []),
    { type: "divider" },
  ];
}

function describeCommands(commands: readonly CommandHelp[]): Body[] {
  const all = [{ name: ASK, description: "Ask a question that everyone in the channel can read." }, ...commands];
  const list = all.map(({ name, description }) => `\`/${name}\`  ${escapeMarkup(description)}`).join("\n");
  return [
    header("Commands"),
    section(list),
    remark("Slash commands don't work in Slack's threads. There, write `!model`, `!forget` and so on."),
    { type: "divider" },
  ];
}

function describeOwn(models: readonly string[], about: About | undefined): Body[] {
  const chooser = select(HOME_ACTIONS.model, models, { placeholder: "Choose a model", chosen: about?.model });
  const persona = about?.persona && truncate(about.persona, MAX_PERSONA_CHARS).replace(/\s+/g, " ");
  const how = about?.answerOptions === undefined ? "" : `, ${escapeMarkup(about.answerOptions)}`;
  const used = about === undefined ? "" : `\n\`${escapeMarkup(about.model)}\` answers you there${how}.`;
  return [
    header("Your direct conversation"),
    section(`*Model*${used}`, chooser),
    ...(persona === undefined ? [] : [section(`*Persona*, set with \`/persona\`\n${escapeMarkup(persona)}`)]),
    { type: "divider" },
  ];
}

function describeData(about: About | undefined): Body[] {
  const kept =
    about === undefined
      ? "I keep what you write to me, so I know what we talked about."
      : `I keep your messages and my answers: ${count(about.kept.entries, "message")} in ${count(about.kept.conversations, "conversation")}.`;
  const confirm = {
    title: plain("Forget everything?"),
    text: plain("This erases everything you've written to me and all my answers. You can't undo it."),
    confirm: plain("Forget it"),
    deny: plain("Keep it"),
    style: "danger",
  };
  const used = about?.used === undefined ? "" : `\nThis month you've used ${about.used}.`;
  return [
    header("Your data"),
    section(kept + used),
    {
      type: "actions",
      elements: [
        button(HOME_ACTIONS.export, "Send it to me"),
        button(HOME_ACTIONS.forget, "Forget everything", { style: "danger", confirm }),
      ],
    },
  ];
}

function button(actionId: string, label: string, more: Body = {}): Body {
  return { type: "button", action_id: actionId, text: plain(label), ...more };
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** The sink for an address. For an action on a home tab, it redraws that tab after the answer. */
export function withHome(sink: ReplySink, address: ReplyAddress, redrawHome: Interactions["redrawHome"]): ReplySink {
  const { team: teamId, user: userId, isFromHome } = readExtra(address);
  if (isFromHome === undefined || userId === undefined) return sink;
  const home = { teamId, userId, channelId: address.channelId };

  function following<A extends unknown[], T>(write: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
    return async (...args) => {
      const written = await write(...args);
      void redrawHome(home);
      return written;
    };
  }

  return { ...sink, post: following(sink.post) };
}
