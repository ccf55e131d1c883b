import { askForTexts, askWhatToForget, type FormProblem } from "./dialog.ts";
import { toUpload } from "./drafts.ts";
import { NO_CHOICE, type PictureForm, readPrompt, toForm } from "./picture-form.ts";
import { createPlaceActions, go, type PlaceActions, readPlace } from "./places.ts";
import { createNonce, describeProblem, getJson, postJson, postLast, RefusedError } from "./requests.ts";
import type { Sending } from "./sending.ts";
import {
  isChat,
  isUploading,
  type LeavingId,
  type Place,
  placeKey,
  type Store,
  stoppableAt,
  type Writing,
  writingAt,
} from "./state.ts";
import type { Button, DescribedPicture, MessageRow, PersonaFields, PictureMenu, SendBody } from "./wire.ts";

const NOTICE_MS = 7000;
/** A deletion can be undone for this long. */
const UNDO_MS = 5000;
/** A `/forget` that does not say what to forget, or how thoroughly. */
const FORGET = /^\/forget(?:\s+(?:me|everything|everything about me|all))?$/i;

const PERSONA = /^\/persona$/i;

/** Everything a person can do at the page. The views call these and hold no state of their own. */
export interface Actions extends PlaceActions, PictureActions {
  change: Store["change"];
  write: Store["write"];
  send: (place: Place) => void;
  /** Sends the messages that were written before the page was ready. */
  sendWaiting: () => void;
  sendText: (place: Place, text: string) => void;
  again: Sending["again"];
  discard: Sending["discard"];
  /** Takes a message that was not sent back into the composer. */
  rewrite: (nonce: string) => void;
  /** `reason`: why an answer is bad, once that was pressed. */
  press: (message: MessageRow, button: Button, reason?: string) => void;
  /** False when nothing is being written there. */
  stopAt: (place: Place) => boolean;
  /** Resolves to whether the text was taken. */
  edit: (message: MessageRow, text: string) => Promise<boolean>;
  cancelEdit: () => Promise<boolean>;
  /** Both can be taken back for a few seconds. */
  erase: (message: MessageRow) => void;
  eraseChat: (id: string) => void;
  /** With `undo`, for as long as that can be pressed. */
  notice: (text: string, undo?: () => void) => void;
}

export function createActions(store: Store, sending: Sending): Actions {
  const { state, change } = store;
  const notice = createNotice(store);
  const requests = createRequests(store, notice);
  const pictures = createPictureActions(store, notice);

  function askForForgetting(place: Place): void {
    change(() => undefined);
    askWhatToForget((what) => {
      change(() => void state.writing.delete(placeKey(place)));
      sending.send(place, `/forget ${what}`, []);
    });
  }

  function send(place: Place): void {
    const writing = writingAt(state, place);
    const { text, uploads, picture } = writing;
    const files = uploads.flatMap(({ file }) => (file === undefined ? [] : [file]));
    const isWaiting = !state.isReady || uploads.some(isUploading);
    store.write(place, { isWaiting });
    if (isWaiting) return;
    if (state.hello?.canDraw === true && picture === undefined && readPrompt(text)?.trim() === "") {
      return pictures.openPicture(place);
    }
    if (FORGET.test(text.trim())) return askForForgetting(place);
    if (state.hello?.hasPersona === true && PERSONA.test(text.trim())) return void openPersona(place, store, notice);
    if (text.trim() === "" && (files.length === 0 || picture !== undefined)) return;
    // A blank in front keeps a slash from being read as a command.
    sending.send(place, text.trimEnd(), files, picture);
    if (picture !== undefined) state.lastPicture = { ...picture, basis: undefined, isSpoiler: false };
    change(() => begin(place, writing.aside, store));
  }

  return {
    change,
    notice,
    ...requests,
    ...pictures,
    ...createPlaceActions(store),
    write: store.write,
    send,
    sendWaiting() {
      for (const [key, { isWaiting }] of state.writing) {
        const place = isWaiting ? readPlace(`#${key}`) : undefined;
        if (place !== undefined) send(place);
      }
    },
    sendText: (place, text) => sending.send(place, text, []),
    again: sending.again,
    discard: sending.discard,
    rewrite: (nonce) => rewrite(nonce, store, sending),
    stopAt(place) {
      const found = stoppableAt(state, place);
      if (found === undefined) return false;
      const { turnId, message } = found;
      if (message === undefined) requests.stop(turnId);
      else requests.press(message, { action: "stop", turnId, label: "" });
      return true;
    },
  };
}

/** Opens the form for the bot's persona in a channel, which sends the command `/persona`. */
async function openPersona(place: Place, { state, change }: Store, notice: Actions["notice"]): Promise<void> {
  const { channelId } = place;

  async function send(persona: PersonaFields): Promise<FormProblem | undefined> {
    const isNewChat = isChat(state, channelId) && !state.channels.has(channelId);
    const by = { nonce: createNonce(), authorId: state.speakerId, ...place, isNewChat };
    const body: SendBody = { ...by, text: "/persona", fileIds: [], persona };
    try {
      await postJson("/local/messages", body);
      change(() => void state.writing.delete(placeKey(place)));
      return undefined;
    } catch (error) {
      // A message that was stored and not accepted would be offered again at the next start.
      postJson("/local/messages/withdraw", { nonce: body.nonce }).catch(() => undefined);
      return { text: describeProblem(error), field: error instanceof RefusedError ? error.field : undefined };
    }
  }

  try {
    const set = (await getJson(`/local/persona?${new URLSearchParams({ channelId })}`)) as PersonaFields;
    const fields = [
      { name: "persona", label: "What I am told to be here", value: set.persona },
      { name: "prompts", label: "What I suggest in /help, a line each", value: set.prompts },
    ];
    const hint = "An empty field takes back what was set. Both hold for everybody in this channel.";
    askForTexts({ title: "Persona", fields, hint }, ({ persona = "", prompts = "" }) => send({ persona, prompts }));
  } catch (error) {
    notice(describeProblem(error));
  }
}

/** Empties a composer, or brings back the text that was laid aside there. */
function begin(place: Place, aside: Writing["aside"], { state, write }: Store): void {
  if (aside === undefined) state.writing.delete(placeKey(place));
  else write(place, { ...aside, picture: undefined, aside: undefined });
}

/** Shows a sentence for a few seconds. */
function createNotice({ state, change }: Store): Actions["notice"] {
  let timer = 0;
  const show = (text: string, undo: (() => void) | undefined) =>
    change(() => void Object.assign(state, { notice: text, undo }));
  return (text, undo) => {
    clearTimeout(timer);
    show(text, undo);
    timer = setTimeout(() => show("", undefined), undo === undefined ? NOTICE_MS : UNDO_MS);
  };
}

type Requests = Pick<Actions, "press" | "edit" | "cancelEdit" | "erase" | "eraseChat"> & {
  stop: (turnId: string) => void;
};

function createRequests({ state, change }: Store, notice: Actions["notice"]): Requests {
  /** Presses under way, so that a double click counts once. */
  const pressed = new Set<string>();

  /** Resolves to whether it worked; if not, the person has been told. */
  async function request(path: string, body: object): Promise<boolean> {
    try {
      await postJson(path, { nonce: createNonce(), authorId: state.speakerId, ...body });
      return true;
    } catch (error) {
      notice(describeProblem(error));
      return false;
    }
  }

  async function edit(message: MessageRow, text: string): Promise<boolean> {
    const isDone = text === message.text || (await request(`/local/messages/${message.id}/edit`, { text }));
    if (isDone) change(() => void (state.editingId = undefined));
    return isDone;
  }

  async function press({ id }: MessageRow, { action, turnId }: Button, reason?: string): Promise<void> {
    const key = `${id}:${action}`;
    if (pressed.has(key)) return;
    pressed.add(key);
    const isTaken = await request(`/local/messages/${id}/action`, { action, turnId, ...(reason && { reason }) });
    pressed.delete(key);
    if (!isTaken) return;
    if (reason !== undefined) notice("Thank you.");
    change(() => void (state.judgedId = action === "bad" && reason === undefined ? id : undefined));
  }

  return {
    press: (message, button, reason) => void press(message, button, reason),
    stop: (turnId) => void request("/local/stop", { turnId }),
    edit: (message, text) => edit(message, text.trim()),
    async cancelEdit() {
      change(() => void (state.editingId = undefined));
      return true;
    },
    ...createLeaving({ state, change }, request, notice),
  };
}

type Request = (path: string, body: object) => Promise<boolean>;

/** Hides something at once and deletes it when the time for undoing is over, or the page is left. */
function createLeaving(
  { state, change }: Pick<Store, "state" | "change">,
  request: Request,
  notice: Actions["notice"],
) {
  const waiting = new Map<string, { id: LeavingId; timer: number }>();

  function show(path: string, id: LeavingId): void {
    clearTimeout(waiting.get(path)?.timer);
    waiting.delete(path);
    change(() => void state.leaving.delete(id));
  }

  async function send(path: string, id: LeavingId): Promise<void> {
    await request(path, {});
    show(path, id);
  }

  addEventListener("pagehide", () => {
    for (const path of waiting.keys()) postLast(path, { nonce: createNonce(), authorId: state.speakerId });
    waiting.clear();
  });

  return {
    erase(message: MessageRow): void {
      const { id } = message;
      const path = `/local/messages/${id}/delete`;
      change(() => void state.leaving.add(id));
      // Deleted at once: its answer goes with it, and would grow on until then.
      if (stoppableAt(state, message) !== undefined) return void send(path, id);
      leave(path, id, "The message is deleted.", () => {});
    },
    eraseChat(id: string): void {
      const { view } = state;
      change(() => void state.leaving.add(id));
      leave(`/local/chats/${id}/delete`, id, "The chat is deleted.", () => go(view));
    },
  };

  function leave(path: string, id: LeavingId, words: string, back: () => void): void {
    waiting.set(path, { id, timer: setTimeout(() => void send(path, id), UNDO_MS) });
    notice(words, () => {
      show(path, id);
      back();
      notice("");
    });
  }
}

function rewrite(nonce: string, { state, write }: Store, sending: Sending): void {
  const pending = state.pending.find((each) => each.nonce === nonce);
  if (pending === undefined) return;
  const { picture } = pending;
  const own = picture === undefined ? pending.text : (readPrompt(pending.text) ?? "");
  const text = [own, writingAt(state, pending).text].filter((each) => each !== "").join("\n\n");
  write(pending, { text, uploads: pending.files.map(toUpload), isWaiting: false, picture, aside: undefined });
  sending.discard(nonce);
}

export interface PictureActions {
  /** Opens the form; the composer's text then says what to draw. */
  openPicture: (place: Place) => void;
  /** Closes the form, if it is open, and brings back what stood there before a picture was to be changed. */
  closePicture: (place: Place) => boolean;
  choose: (place: Place, changes: Partial<PictureForm>) => void;
  /** Opens the form as a picture was asked for, with the picture as the first reference. */
  editPicture: (message: MessageRow, pictureId: string) => Promise<void>;
  uncover: (fileId: string) => void;
}

function createPictureActions({ state, change, write }: Store, notice: (text: string) => void): PictureActions {
  async function loadMenu(): Promise<void> {
    try {
      const menu = (await getJson("/local/pictures/menu")) as PictureMenu;
      change(() => void (state.menu = menu));
    } catch (error) {
      notice(describeProblem(error));
    }
  }

  return {
    openPicture(place) {
      // Asked for each time, because the gateway's models change; what is known is offered meanwhile.
      void loadMenu();
      const { text, picture = state.lastPicture ?? NO_CHOICE } = writingAt(state, place);
      write(place, { text: readPrompt(text) ?? text, picture });
      focusAt(place);
    },
    closePicture(place) {
      const { picture, aside } = writingAt(state, place);
      if (picture === undefined) return false;
      write(place, { ...aside, picture: undefined, aside: undefined });
      focusAt(place);
      return true;
    },
    choose(place, changes) {
      const { picture = NO_CHOICE } = writingAt(state, place);
      write(place, { picture: { ...picture, ...changes } });
    },
    async editPicture({ channelId, threadId, files }, pictureId) {
      const file = files.find(({ isImage }) => isImage);
      if (file === undefined) return;
      void loadMenu();
      try {
        const by = new URLSearchParams({ authorId: state.speakerId, channelId });
        const path = `/local/pictures/${encodeURIComponent(pictureId)}?${by}`;
        const { prompt, options } = (await getJson(path)) as DescribedPicture;
        const place = { channelId, threadId };
        const { text, uploads, aside = { text, uploads } } = writingAt(state, place);
        const picture = toForm(options, { id: pictureId, file });
        write(place, { text: prompt, uploads: [], isWaiting: false, picture, aside });
        focusAt(place);
      } catch (error) {
        notice(describeProblem(error));
      }
    },
    uncover: (fileId) => change(() => void (state.uncovered = new Set(state.uncovered).add(fileId))),
  };
}

/** Gives the keyboard to the composer of a place, once it is drawn. */
function focusAt({ threadId }: Place): void {
  const pane = threadId !== null && document.querySelector(".thread") !== null ? ".thread" : "main";
  requestAnimationFrame(() => {
    const field = document.querySelector<HTMLTextAreaElement>(`${pane} .composer textarea`);
    field?.focus();
    field?.setSelectionRange(field.value.length, field.value.length);
  });
}
