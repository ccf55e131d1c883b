import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { About, CommandHelp, ReadAbout } from "../../../src/port/catalogue.ts";
import type { CommandEvent, ReplyAddress } from "../../../src/port/events.ts";
import type { ReplySink } from "../../../src/port/sink.ts";
import { truncate } from "../../../src/text/truncate.ts";
import { readExtra } from "../address.ts";
import { SlackApiError } from "../api/error.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
import { PLATFORM } from "../ids.ts";
import { type HandlerResult, type Interactions, NOTHING } from "../listen/dispatcher.ts";
import { toIdentity } from "../people/people.ts";
import { escapeMarkup } from "../write/markdown.ts";
import { ASK } from "./commands.ts";
import type { ImagineForms } from "./imagine.ts";
import type { ButtonPayload } from "./payloads.ts";
import { type HandlerDeps, toEventBase, toName, type UserAction } from "./user-action.ts";
import { header, plain, remark, section, select } from "./views.ts";

const PUBLISH_MS = 10_000;
const READ_MS = 3_000;
/** The longest rate limit that is waited for: the person looks at an empty page meanwhile. */
const MAX_WAIT_MS = 30_000;

/** `callback_id` of the page. */
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

/** A workspace, as far as a home needs it. */
type HomeWorkspace = Pick<Workspace, "teamId" | "enterpriseId" | "isSole">;

/** The home tab, which everybody has for themselves: what the bot does, its commands, one's own settings and data. */
export interface Home {
  /** Rejects when Slack does not take the page. */
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
        author: toIdentity(workspace, userId),
      }).catch(() => undefined),
    ]);
    const view = toHomeView({ commands, models, about, draws: forms !== undefined, channelId, userId });
    const publish = () =>
      deps.api.call(workspace.teamId, "views.publish", { user_id: userId, view }, AbortSignal.timeout(PUBLISH_MS));
    try {
      await publish();
    } catch (error) {
      const waitMs = error instanceof SlackApiError ? error.retryAfterMs : undefined;
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
      // A home of somebody else, or of a former version, which is drawn anew when it is opened.
      if (userId !== user.id) return NOTHING;
      if (element.action_id === HOME_ACTIONS.draw) {
        if (forms === undefined) return NOTHING;
        return {
          events: [],
          afterwards: () => forms.open({ workspace, person: user, channelId }, trigger, { references: [] }),
        };
      }
      const said = toCommand(element.action_id, element.selected_option?.value);
      if (said === undefined) return NOTHING;
      const name = toName("home", payload);
      const userAction: UserAction = { workspace, person: user, channelId, name, isFromHome: true };
      const base = await toEventBase(userAction, { isPrivate: true }, deps);
      const event: CommandEvent = { kind: "command", ...base, ...said };
      return { events: [event] };
    },
  };
}

/** A choice on the page is a command given in the direct conversation. */
function toCommand(actionId: string, value: string | undefined): Pick<CommandEvent, "name" | "text"> | undefined {
  if (actionId === HOME_ACTIONS.model && value !== undefined) return { name: "model", text: value };
  if (actionId === HOME_ACTIONS.export) return { name: "export", text: "" };
  if (actionId === HOME_ACTIONS.forget) return { name: "forget", text: "everything for good" };
  return undefined;
}

interface HomeFacts {
  commands: readonly CommandHelp[];
  /** Empty where they are not known. */
  models: readonly string[];
  about: About | undefined;
  draws: boolean;
  /** The direct conversation. */
  channelId: string;
  /** The person whose home it is. */
  userId: string;
}

/** The page as Slack is told it. Pure. */
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
    "Mention me in a channel, or write to me under *Messages*, and I answer while you watch. In a thread that I am in you " +
    "need not mention me again. Edit your message while I write and I begin again; delete it and I stop.";
  return [
    header("Ask me anything"),
    section(text),
    ...(draws ? [{ type: "actions", elements: [button(HOME_ACTIONS.draw, "Draw a picture")] }] : []),
    { type: "divider" },
  ];
}

function describeCommands(commands: readonly CommandHelp[]): Body[] {
  const all = [{ name: ASK, description: "Asks a question, for everybody to read." }, ...commands];
  const list = all.map(({ name, description }) => `\`/${name}\`  ${escapeMarkup(description)}`).join("\n");
  return [
    header("Commands"),
    section(list),
    remark("Slack has no slash commands in threads: write `!model`, `!forget` and so on there."),
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
    ...(persona === undefined ? [] : [section(`*Persona*, set by \`/persona\`\n${escapeMarkup(persona)}`)]),
    { type: "divider" },
  ];
}

function describeData(about: About | undefined): Body[] {
  const kept =
    about === undefined
      ? "What you write to me is kept so that I know what we talked about."
      : `I keep what you wrote to me and what I answered: ${count(about.kept.entries, "message")} in ${count(about.kept.conversations, "conversation")}.`;
  const confirm = {
    title: plain("Forget everything?"),
    text: plain("This erases all that you have written to me, and my answers. It cannot be undone."),
    confirm: plain("Forget it"),
    deny: plain("Keep it"),
    style: "danger",
  };
  const used = about?.used === undefined ? "" : `\nThis month you used ${about.used}.`;
  return [
    header("Your data"),
    section(kept + used),
    {
      type: "actions",
      elements: [
        button(HOME_ACTIONS.export, "Send it to me"),
        button(HOME_ACTIONS.forget, "Forget it all", { style: "danger", confirm }),
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

/** The sink of an address. After an answer to something asked on a home tab, that tab is drawn again. */
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

  const { post, postFirst } = sink;
  return { ...sink, post: following(post), ...(postFirst && { postFirst: following(postFirst) }) };
}
