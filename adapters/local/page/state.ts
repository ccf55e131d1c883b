import type { PictureForm } from "./picture-form.ts";
import type { ChatRow, FileRow, GatewayNotice, Hello, MessageRow, PictureMenu, Progress, Row } from "./wire.ts";
import { isWorking, orderMessages } from "./working.ts";

export interface Pending {
  nonce: string;
  chatId: string;
  text: string;
  files: FileRow[];
  picture: PictureForm | undefined;
  isNewChat: boolean;
  createdAt: number;
  /** `waiting` for the connection, or `failed` with a `problem` for the person. */
  status: "sending" | "waiting" | "failed" | "sent";
  problem: string;
}

export interface Upload {
  key: string;
  name: string;
  /** The URL that shows the image before it is sent; "" for other files. */
  previewUrl: string;
  /** The fraction that was uploaded, from 0 to 1. */
  progress: number;
  file: FileRow | undefined;
  problem: string;
}

export interface Writing {
  text: string;
  uploads: Upload[];
  /** The person sent the message before the page was ready or its files were uploaded. The page sends it later. */
  isWaiting: boolean;
  /** Set while the image form is open. The text then describes the image. */
  picture: PictureForm | undefined;
  aside: Pick<Writing, "text" | "uploads"> | undefined;
}

const NOTHING: Writing = { text: "", uploads: [], isWaiting: false, picture: undefined, aside: undefined };

export function isUploading({ file, problem }: Upload): boolean {
  return file === undefined && problem === "";
}

export interface State {
  hello: Hello | undefined;
  /** True once the page has everything that the server had when the page opened. */
  isReady: boolean;
  isConnected: boolean;
  /** The gateway's problem; null if none is known. */
  gateway: GatewayNotice | null;
  /** The model that answers, by chat; null if the server does not report it. */
  models: Map<string, string | null>;
  chats: Map<string, ChatRow>;
  messages: Map<number, MessageRow>;
  progress: Progress[];
  waiting: ReadonlySet<number>;
  pending: Pending[];
  /** The newest message that the person has seen, by chat. */
  lastRead: Record<string, number>;
  chatId: string;
  writing: Map<string, Writing>;
  menu: PictureMenu | undefined;
  lastPicture: PictureForm | undefined;
  /** Ids of the covered images that the person has uncovered. */
  uncovered: Set<string>;
  /** Id of the answer that the person just rated as bad; undefined once the person has given the reason. */
  judgedId: number | undefined;
  editingId: number | undefined;
  isDrawerOpen: boolean;
  query: string;
  notice: string;
  undo: (() => void) | undefined;
  /** Ids of messages and chats whose deletion can still be undone. */
  leaving: Set<LeavingId>;
  /** Id of the message that the person opened from a search, until the page shows it. */
  soughtId: number | undefined;
}

export type LeavingId = number | string;

export interface Store {
  readonly state: State;
  /** Changes the state. The next frame draws all changes together. */
  change: (work: (state: State) => void) => void;
  write: (chatId: string, writing: Partial<Writing>) => void;
  onDraw: (draw: (state: State) => void) => void;
}

export type InitialState = Pick<State, "chatId" | "lastRead" | "writing">;

export function createStore(beginning: InitialState): Store {
  const draws: ((state: State) => void)[] = [];
  let isScheduled = false;
  const state: State = {
    hello: undefined,
    isReady: false,
    isConnected: false,
    gateway: null,
    models: new Map(),
    chats: new Map(),
    messages: new Map(),
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
    query: "",
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
    write: (chatId, writing) =>
      change(() => void state.writing.set(chatId, { ...writingAt(state, chatId), ...writing })),
    onDraw: (draw) => void draws.push(draw),
  };
}

/** Applies a row. Ignores a row that is older than the known one, so that nothing appears twice or goes back. */
export function applyRow(state: State, row: Row): void {
  if (row.type === "chat") {
    putNewer(state.chats, row.id, row);
    if (row.isDeleted) dropChat(state, row.id);
  } else {
    putNewer(state.messages, row.id, row);
    if (row.nonce !== null) state.pending = state.pending.filter(({ nonce }) => nonce !== row.nonce);
  }
}

/** Keeps the chat's row, so that an older row does not restore the chat. */
function dropChat(state: State, chatId: string): void {
  for (const { id, chatId: at } of state.messages.values()) if (at === chatId) state.messages.delete(id);
  state.pending = state.pending.filter((each) => each.chatId !== chatId);
  state.writing.delete(chatId);
}

function putNewer<K, V extends { seq: number }>(map: Map<K, V>, key: K, row: V): void {
  if ((map.get(key)?.seq ?? -1) < row.seq) map.set(key, row);
}

export function writingAt(state: State, chatId: string): Writing {
  return state.writing.get(chatId) ?? NOTHING;
}

export function messagesAt(state: State, chatId: string): MessageRow[] {
  const isShown = (each: MessageRow) => each.chatId === chatId && !each.isDeleted && !state.leaving.has(each.id);
  return orderMessages([...state.messages.values()].filter(isShown));
}

export function nameOf(state: State, isBot: boolean): string {
  return isBot ? (state.hello?.botName ?? "") : "You";
}

/** The texts of the whole answer that a message belongs to, without images and their status messages. */
export function textsOf(state: State, message: MessageRow): string[] {
  const { chatId, replyTo, isAside } = message;
  const isPart = (each: MessageRow) => each.text !== "" && each.files.length === 0 && !isWorking(each);
  if (replyTo === null || !isPart(message)) return [message.text];
  const same = messagesAt(state, chatId).filter((each) => each.replyTo === replyTo && each.isAside === isAside);
  return same.filter(isPart).map(({ text }) => text);
}

/** Returns the id of the chat's running turn if it can be stopped, and the turn's message if there is one. */
export function stoppableAt(state: State, chatId: string): { turnId: string; message?: MessageRow } | undefined {
  for (const message of messagesAt(state, chatId).toReversed()) {
    const stop = message.buttons.find(({ action }) => action === "stop");
    if (stop !== undefined) return { turnId: stop.turnId, message };
  }
  const doing = state.progress.find((each) => each.chatId === chatId);
  return doing === undefined || doing.turnId === null ? undefined : { turnId: doing.turnId };
}

export function pictureOf(state: State, pictureId: string): FileRow | undefined {
  const isOf = ({ buttons }: MessageRow) => buttons.some(({ turnId }) => turnId === pictureId);
  return [...state.messages.values()].find(isOf)?.files.find(({ isImage }) => isImage);
}
