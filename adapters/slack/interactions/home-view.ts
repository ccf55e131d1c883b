import type { About, CommandHelp } from "../../../src/port/catalogue.ts";
import type { Body } from "../api/wire.ts";
import { ASK } from "./commands.ts";
import { escapeMarkup, header, plain, remark, section, select } from "./views.ts";

/** `callback_id` of the page. */
export const HOME = "home";
export const HOME_ACTIONS = {
  model: "home_model",
  draw: "home_draw",
  export: "home_export",
  forget: "home_forget",
} as const;

const MAX_PERSONA_CHARS = 300;

export interface HomeFacts {
  commands: readonly CommandHelp[];
  /** Empty where they are not known. */
  models: readonly string[];
  about: About | undefined;
  draws: boolean;
  /** The direct conversation. */
  channelId: string;
  /** Whose home it is. */
  userId: string;
}

/** The page as Slack is told it. Pure. */
export function toHomeView({ commands, models, about, draws, channelId, userId }: HomeFacts): Body {
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
  const persona = about?.persona?.slice(0, MAX_PERSONA_CHARS).replace(/\s+/g, " ");
  const used = about === undefined ? "" : `\n\`${escapeMarkup(about.model)}\` answers you there.`;
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
