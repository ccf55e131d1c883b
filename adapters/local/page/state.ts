import type { PictureForm } from "./picture-form.ts";
import type {
  ChannelRow,
  FileRow,
  GatewayNotice,
  Hello,
  MessageRow,
  PersonRow,
  PictureMenu,
  Place,
  Progress,
  Row,
} from "./wire.ts";
import { isWorking, orderMessages } from "./working.ts";

export type { Place };

/** A message that is on its way to the server, or that did not get there. */
export interface Pending extends Place {
  nonce: string;
  authorId: string;
  text: string;
  files: FileRow[];
  /** The choices, when it asks for a picture. */
  picture: PictureForm | undefined;
  isNewChat: boolean;
  createdAt: number;
  /** `waiting` for the connection; `failed` for the person, who reads `problem`. */
  status: "sending" | "waiting" | "failed" | "sent";
  problem: string;
}

export interface Upload {
  key: string;
  name: string;
  /** Shows the picture itself before it is sent; "" for other files. */
  previewUrl: string;
  /** From 0 to 1. */
  progress: number;
  file: FileRow | undefined;
  problem: string;
}

/** The content of a composer. */
export interface Writing {
  text: string;
  uploads: Upload[];
  /** Was sent before the page was ready or its files were there, and goes as soon as they are. */
  isWaiting: boolean;
  /** The form for a picture is open, and the text says what to draw. */
  picture: PictureForm | undefined;
  /** The content from before a picture was to be changed. */
  aside: Pick<Writing, "text" | "uploads"> | undefined;
}

const NOTHING: Writing = { text: "", uploads: [], isWaiting: false, picture: undefined, aside: undefined };

/** Still on its way. */
export function isUploading({ file, problem }: Upload): boolean {
  return file === undefined && problem === "";
}

export interface State {
  hello: Hello | undefined;
  /** Everything the server had when the page was opened has arrived. */
  isReady: boolean;
  isConnected: boolean;
  /** The gateway's trouble; null where none is known. */
  gateway: GatewayNotice | null;
  /** The model that answers, by channel; null where it is not told. */
  models: Map<string, string | null>;
  people: Map<string, PersonRow>;
  channels: Map<string, ChannelRow>;
  messages: Map<number, MessageRow>;
  /** Messages of each thread, oldest first, by the id of its first message. */
  replies: Map<number, MessageRow[]>;
  progress: Progress[];
  /** Ids of messages that wait for their turn. */
  waiting: ReadonlySet<number>;
  pending: Pending[];
  /** Newest message seen, by channel. */
  lastRead: Record<string, number>;
  view: Place;
  speakerId: string;
  writing: Map<string, Writing>;
  /** Once the form for pictures was opened. */
  menu: PictureMenu | undefined;
  /** The choices for the last picture. */
  lastPicture: PictureForm | undefined;
  /** Ids of the covered pictures that somebody wanted to see. */
  uncovered: Set<string>;
  /** The answer that was just called bad, until it was said why. */
  judgedId: number | undefined;
  /** The message being edited in place. */
  editingId: number | undefined;
  isDrawerOpen: boolean;
  isSwitcherOpen: boolean;
  /** One sentence about something that did not work, or that can be taken back. */
  notice: string;
  /** Undoes the deletion that the notice tells of. */
  undo: (() => void) | undefined;
  /** Deleted messages and chats whose deletion can still be undone. */
  leaving: Set<LeavingId>;
  /** The message that was searched for, until it is shown. */
  soughtId: number | undefined;
}

/** The id of a message, or of a chat. */
export type LeavingId = number | string;

export interface Store {
  readonly state: State;
  /** Changes the state and draws it in the next frame, however many changes came before. */
  change: (work: (state: State) => void) => void;
  /** Changes the content of a place's composer. */
  write: (place: Place, writing: Partial<Writing>) => void;
  onDraw: (draw: (state: State) => void) => void;
}

export type InitialState = Pick<State, "view" | "speakerId" | "lastRead" | "writing">;

export function createStore(beginning: InitialState): Store {
  const draws: ((state: State) => void)[] = [];
  let isScheduled = false;
  const state: State = {
    hello: undefined,
    isReady: false,
    isConnected: false,
    gateway: null,
    models: new Map(),
    people: new Map(),
    channels: new Map(),
    messages: new Map(),
    replies: new Map(),
    progress: [],
    waiting: new Set(),
    pending: [],
    ...beginning,
    menu: undefined,
    lastPicture: undefined,
    uncovered: new Set(),
    judgedId: undefined,
    editingId: undefined,
    isDrawerOpen: false,
    isSwitcherOpen: false,
    notice: "",
    undo: undefined,
    leaving: new Set(),
    soughtId: undefined,
  };

  function drawAll(): void {
    isScheduled = false;
    for (const draw of draws) draw(state);
  }

  function change(work: (state: State) => void): void {
    work(state);
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(drawAll);
  }

  return {
    state,
    change,
    write: (place, writing) =>
      change(() => void state.writing.set(placeKey(place), { ...writingAt(state, place), ...writing })),
    onDraw: (draw) => void draws.push(draw),
  };
}

/** Takes a row in; one that is older than the one known changes nothing, so nothing appears twice or goes back. */
export function applyRow(state: State, row: Row): void {
  if (row.type === "person") putNewer(state.people, row.id, row);
  else if (row.type === "channel") {
    putNewer(state.channels, row.id, row);
    if (row.isDeleted) dropChannel(state, row.id);
  } else {
    putNewer(state.messages, row.id, row);
    if (row.threadId !== null) state.replies.set(row.threadId, withReply(repliesTo(state, row.threadId), row));
    if (row.nonce !== null) state.pending = state.pending.filter(({ nonce }) => nonce !== row.nonce);
  }
}

/** Its row stays, so that an older one does not bring it back. */
function dropChannel(state: State, channelId: string): void {
  for (const { id, channelId: at } of state.messages.values()) if (at === channelId) state.messages.delete(id);
  state.pending = state.pending.filter((each) => each.channelId !== channelId);
  state.writing.delete(channelId);
}

function withReply(replies: readonly MessageRow[], row: MessageRow): MessageRow[] {
  const known = replies.find(({ id }) => id === row.id);
  if (known !== undefined && known.seq >= row.seq) return [...replies];
  const others = replies.filter(({ id }) => id !== row.id);
  return (row.isDeleted ? others : [...others, row]).sort((a, b) => a.id - b.id);
}

function putNewer<K, V extends { seq: number }>(map: Map<K, V>, key: K, row: V): void {
  if ((map.get(key)?.seq ?? -1) < row.seq) map.set(key, row);
}

export function placeKey({ channelId, threadId }: Place): string {
  return threadId === null ? channelId : `${channelId}/${threadId}`;
}

export function writingAt(state: State, place: Place): Writing {
  return state.writing.get(placeKey(place)) ?? NOTHING;
}

export function isChat(state: State, channelId: string): boolean {
  return (state.channels.get(channelId)?.kind ?? "chat") === "chat";
}

/** Messages of a place as its reader sees them, oldest first. A thread begins with its first message. */
export function messagesAt(state: State, { channelId, threadId }: Place): MessageRow[] {
  const found: MessageRow[] = [];
  for (const message of state.messages.values()) {
    if (message.channelId !== channelId) continue;
    if (message.threadId !== threadId && message.id !== threadId) continue;
    if (message.visibleTo !== null && message.visibleTo !== state.speakerId) continue;
    if (state.leaving.has(message.id)) continue;
    if (!message.isDeleted || repliesTo(state, message.id).length > 0) found.push(message);
  }
  return orderMessages(found);
}

export function repliesTo(state: State, rootId: number): MessageRow[] {
  return state.replies.get(rootId) ?? [];
}

export function nameOf(state: State, authorId: string | null): string {
  if (authorId === null) return state.hello?.botName ?? "";
  return state.people.get(authorId)?.name ?? "Somebody";
}

/** Texts of a message; of a part of an answer, those of the whole answer. Pictures and the work on them are no part. */
export function textsOf(state: State, message: MessageRow): string[] {
  const { replyTo, visibleTo } = message;
  const isPart = (each: MessageRow) => each.text !== "" && each.files.length === 0 && !isWorking(each);
  if (replyTo === null || !isPart(message)) return [message.text];
  const same = messagesAt(state, message).filter((each) => each.replyTo === replyTo && each.visibleTo === visibleTo);
  return same.filter(isPart).map(({ text }) => text);
}

/** Id of the turn at this place that can be stopped, if one is being worked on, and its message once it has one. */
export function stoppableAt(state: State, place: Place): { turnId: string; message?: MessageRow } | undefined {
  for (const message of messagesAt(state, place).toReversed()) {
    const stop = message.buttons.find(({ action }) => action === "stop");
    if (stop !== undefined) return { turnId: stop.turnId, message };
  }
  const doing = state.progress.find((each) => placeKey(each) === placeKey(place));
  return doing === undefined || doing.turnId === null ? undefined : { turnId: doing.turnId };
}

/** Finds the picture that the form was opened for by its own button. */
export function pictureOf(state: State, pictureId: string): FileRow | undefined {
  const isOf = ({ buttons }: MessageRow) => buttons.some(({ turnId }) => turnId === pictureId);
  return [...state.messages.values()].find(isOf)?.files.find(({ isImage }) => isImage);
}
