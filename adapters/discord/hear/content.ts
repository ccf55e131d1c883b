import {
  type APIEmbed,
  type APIMessage,
  type APIMessageTopLevelComponent,
  type APIPoll,
  ComponentType,
  EmbedType,
} from "discord.js";
import { describeCard } from "../../../src/text/card.ts";
import { joinLines, joinParagraphs } from "../../../src/text/join.ts";

/** Discord does not allow deeper layouts. */
const MAX_DEPTH = 4;
const PREVIEWS: ReadonlySet<string | undefined> = new Set([
  EmbedType.Article,
  EmbedType.GIFV,
  EmbedType.Image,
  EmbedType.Link,
  EmbedType.Video,
]);

type Shown = Partial<Pick<APIMessage, "embeds" | "components" | "poll" | "sticker_items">>;

/**
 * Reads what a message shows in addition to its text: embeds, components, a poll and stickers. The result is text in
 * Discord's markup, with ids for users and channels. A question (`isAsked`) has no link previews and no poll votes,
 * because Discord adds them later. Pure.
 */
export function readShown({ embeds = [], components = [], poll, sticker_items = [] }: Shown, isAsked = false): string {
  const cards = embeds.filter(({ type }) => !isAsked || !PREVIEWS.has(type)).map(readEmbed);
  return joinParagraphs(
    ...cards,
    readComponents(components),
    poll ? readPoll(poll, isAsked) : "",
    ...sticker_items.map(({ name }) => `(A sticker: ${name})`),
  );
}

/** https://docs.discord.com/developers/resources/message#embed-object */
function readEmbed(embed: APIEmbed): string {
  if (embed.type === EmbedType.PollResult) return readPollResult(embed);
  const { title, url, description, author, footer, fields = [], provider, color, timestamp } = embed;
  const isPicture = embed.type === EmbedType.Image || embed.type === EmbedType.GIFV;
  const by = [provider?.name, author?.name].filter(Boolean).join(", ");
  return describeCard({
    color: color || undefined,
    author: by,
    title: title === undefined ? undefined : url === undefined ? title : `[${title}](${url})`,
    text: description,
    fields: fields.map(({ name, value }) => ({ name: withoutBlank(name), value: withoutBlank(value) })),
    more: [
      embed.image || (isPicture && embed.thumbnail) ? "(a picture)" : "",
      title === undefined && url !== undefined && !isPicture ? url : "",
    ],
    footer: footer?.text,
    at: timestamp === undefined ? undefined : Date.parse(timestamp),
  });
}

/** Discord does not accept an empty field name, so apps use an invisible character. */
function withoutBlank(text: string): string {
  return text.replaceAll("\u200B", "").trim();
}

function readPollResult({ fields = [] }: APIEmbed): string {
  const values = new Map(fields.map(({ name, value }) => [name, value]));
  const [question, winner, votes, all] = [
    values.get("poll_question_text"),
    values.get("victor_answer_text"),
    values.get("victor_answer_votes"),
    values.get("total_votes"),
  ];
  const result = winner === undefined ? "no one won" : `${winner} won with ${votes ?? "?"} of ${all ?? "?"} votes`;
  return `(The poll ended: ${question ?? "?"} ${result})`;
}

function readPoll({ question, answers, results, allow_multiselect, expiry }: APIPoll, isAsked: boolean): string {
  const counts = new Map(results?.answer_counts.map(({ id, count }) => [id, count]));
  const lines = answers.map(({ answer_id, poll_media: { text, emoji } }) => {
    const count = isAsked || results === undefined ? "" : ` (${counts.get(answer_id) ?? 0})`;
    return `- ${[emoji?.name, text].filter(Boolean).join(" ")}${count}`;
  });
  const many = allow_multiselect ? ", multiple answers allowed" : "";
  const end = expiry ? `, until ${expiry.slice(0, 16).replace("T", " ")} UTC` : "";
  const state = isAsked || results?.is_finalized !== true ? end : ", ended";
  return [`Poll${many}${state}: ${question.text ?? ""}`, ...lines].join("\n");
}

/** Reads any component: https://docs.discord.com/developers/components/reference */
function readComponents(components: readonly APIMessageTopLevelComponent[]): string {
  return joinLines(...components.map((component) => readComponent(component as Component, 0)));
}

/** The fields that all kinds of components use, including kinds that Discord adds later. */
interface Component {
  type: ComponentType;
  content?: string;
  label?: string;
  url?: string;
  placeholder?: string;
  description?: string | null;
  accent_color?: number | null;
  items?: Array<{ description?: string | null }>;
  name?: string;
  file?: { url?: string };
  accessory?: Component;
  components?: Component[];
}

const READERS: Partial<Record<ComponentType, (component: Component, depth: number) => string>> = {
  [ComponentType.ActionRow]: ({ components = [] }) => readControls(components),
  [ComponentType.Button]: (button) => readControls([button]),
  [ComponentType.TextDisplay]: ({ content = "" }) => content,
  [ComponentType.Section]: (section, depth) =>
    joinLines(readInside(section, depth), section.accessory ? readComponent(section.accessory, depth + 1) : ""),
  [ComponentType.Thumbnail]: ({ description }) => describePicture(description),
  [ComponentType.MediaGallery]: ({ items = [] }) =>
    items.map(({ description }) => describePicture(description)).join(" "),
  [ComponentType.File]: ({ name, file }) => `(a file: ${name ?? toFileName(file?.url ?? "")})`,
  [ComponentType.Container]: (container, depth) =>
    describeCard({ color: container.accent_color ?? undefined, text: readInside(container, depth) }),
  [ComponentType.Separator]: () => "",
};

function readComponent(component: Component, depth: number): string {
  if (depth > MAX_DEPTH) return "";
  const read = READERS[component.type];
  if (read !== undefined) return read(component, depth);
  return joinLines(component.content ?? component.label ?? "", readInside(component, depth));
}

function readInside({ components = [] }: Component, depth: number): string {
  return joinLines(...components.map((one) => readComponent(one, depth + 1)));
}

function toFileName(url: string): string {
  return url.split(/[/?]/).findLast((part) => part.includes(".")) ?? "?";
}

/** A button with a URL becomes a link. For any other button, only its label is read. */
function readControls(controls: readonly Component[]): string {
  const links = controls.flatMap(({ label, url }) => (url === undefined ? [] : [label ? `[${label}](${url})` : url]));
  const labels = controls.flatMap(({ label, url, placeholder }) =>
    url === undefined ? [label ?? placeholder ?? ""] : [],
  );
  const named = labels.filter(Boolean);
  return joinLines(links.join(" · "), named.length === 0 ? "" : `(buttons: ${named.join(", ")})`);
}

function describePicture(description: string | null | undefined): string {
  return description ? `(a picture: ${description})` : "(a picture)";
}
