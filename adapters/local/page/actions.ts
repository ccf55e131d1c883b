import { go } from "./chats.ts";
import { askForTexts, askWhatToForget, type FormProblem } from "./dialog.ts";
import { toUpload } from "./drafts.ts";
import { NO_CHOICE, type PictureForm, readPrompt, toForm } from "./picture-form.ts";
import { createNonce, describeProblem, getJson, postJson, postLast, RefusedError } from "./requests.ts";
import type { Sending } from "./sending.ts";
import { isUploading, type LeavingId, type Store, stoppableAt, type Writing, writingAt } from "./state.ts";
import type {
  ActionBody,
  Button,
  DescribedPicture,
  MessageRow,
  PersonaFields,
  PictureMenu,
  ScheduleFields,
  SendBody,
} from "./wire.ts";

const NOTICE_MS = 7000;
const UNDO_MS = 5000;
/** Matches a `/forget` that does not say what to forget or for how long. */
const FORGET = /^\/forget(?:\s+(?:me|everything|everything about me|all))?$/i;

const PERSONA = /^\/persona$/i;

/** Everything that a person can do on the page. The views call these functions and have no state. */
export interface Actions extends PictureActions {
  change: Store["change"];
  write: Store["write"];
  send: (chatId: string) => void;
  sendWaiting: () => void;
  sendText: (chatId: string, text: string) => void;
  again: Sending["again"];
  discard: Sending["discard"];
  rewrite: (nonce: string) => void;
  /** `reason` says why an answer is bad. The page asks for it after the press. */
  press: (message: MessageRow, button: Button, reason?: string) => void;
  /** Opens the form for a schedule's time and task. */
  changeSchedule: (message: MessageRow, button: Button) => Promise<void>;
  /** Returns false if no answer is being written there. */
  stopAt: (chatId: string) => boolean;
  /** Resolves to true if the text was accepted. */
  edit: (message: MessageRow, text: string) => Promise<boolean>;
  cancelEdit: () => Promise<boolean>;
  /** The person can undo `erase` and `eraseChat` for a few seconds. */
  erase: (message: MessageRow) => void;
  eraseChat: (id: string) => void;
  /** With `undo`, shows the notice while undo is possible. */
  notice: (text: string, undo?: () => void) => void;
}

export function createActions(store: Store, sending: Sending): Actions {
  const { state, change } = store;
  const notice = createNotice(store);
  const requests = createRequests(store, notice);
  const pictures = createPictureActions(store, notice);

  function askForForgetting(chatId: string): void {
    change(() => undefined);
    askWhatToForget((what) => {
      change(() => void state.writing.delete(chatId));
      sending.send(chatId, `/forget ${what}`, []);
    });
  }

  function send(chatId: string): void {
    const writing = writingAt(state, chatId);
    const { text, uploads, picture } = writing;
    const files = uploads.flatMap(({ file }) => (file === undefined ? [] : [file]));
    const isWaiting = !state.isReady || uploads.some(isUploading);
    store.write(chatId, { isWaiting });
    if (isWaiting) return;
    if (state.hello?.canDraw === true && picture === undefined && readPrompt(text)?.trim() === "") {
      return pictures.openPicture(chatId);
    }
    if (FORGET.test(text.trim())) return askForForgetting(chatId);
    if (state.hello?.hasPersona === true && PERSONA.test(text.trim())) return void openPersona(chatId, store, notice);
    if (text.trim() === "" && (files.length === 0 || picture !== undefined)) return;
    // Trims only the end, because a space at the start keeps the server from reading a slash as a command.
    sending.send(chatId, text.trimEnd(), files, picture);
    if (picture !== undefined) state.lastPicture = { ...picture, basis: undefined, isSpoiler: false };
    change(() => begin(chatId, writing.aside, store));
  }

  return {
    change,
    notice,
    ...requests,
    ...pictures,
    write: store.write,
    send,
    sendWaiting() {
      for (const [chatId, { isWaiting }] of state.writing) if (isWaiting) send(chatId);
    },
    sendText: (chatId, text) => sending.send(chatId, text, []),
    again: sending.again,
    discard: sending.discard,
    rewrite: (nonce) => rewrite(nonce, store, sending),
    stopAt(chatId) {
      const found = stoppableAt(state, chatId);
      if (found === undefined) return false;
      const { turnId, message } = found;
      if (message === undefined) requests.stop(turnId);
      else requests.press(message, { action: "stop", turnId, label: "" });
      return true;
    },
  };
}

/** Opens the form for the bot's persona in a chat. The form sends the command `/persona`. */
async function openPersona(chatId: string, { state, change }: Store, notice: Actions["notice"]): Promise<void> {
  async function send(persona: PersonaFields): Promise<FormProblem | undefined> {
    const to = { nonce: createNonce(), chatId, isNewChat: !state.chats.has(chatId) };
    const body: SendBody = { ...to, text: "/persona", fileIds: [], persona };
    try {
      await postJson("/local/messages", body);
      change(() => void state.writing.delete(chatId));
      return undefined;
    } catch (error) {
      // Withdraws the message: the server may have stored it without accepting it, and would offer it later.
      postJson("/local/messages/withdraw", { nonce: body.nonce }).catch(() => undefined);
      return toProblem(error);
    }
  }

  try {
    const set = (await getJson(`/local/persona?${new URLSearchParams({ chatId })}`)) as PersonaFields;
    const fields = [
      { name: "persona", label: "My instructions in this chat", value: set.persona, rows: 4 },
      { name: "prompts", label: "Suggestions in /help, one per line", value: set.prompts, rows: 4 },
    ];
    const hint = "Leave a field empty to use the default. Both apply to this chat.";
    askForTexts({ title: "Persona", fields, hint, verb: "Save" }, ({ persona = "", prompts = "" }) =>
      send({ persona, prompts }),
    );
  } catch (error) {
    notice(describeProblem(error));
  }
}

function toProblem(error: unknown): FormProblem {
  return { text: describeProblem(error), field: error instanceof RefusedError ? error.field : undefined };
}

/** Clears a composer, or restores the text that was set aside there. */
function begin(chatId: string, aside: Writing["aside"], { state, write }: Store): void {
  if (aside === undefined) state.writing.delete(chatId);
  else write(chatId, { ...aside, picture: undefined, aside: undefined });
}

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

type Requests = Pick<Actions, "press" | "changeSchedule" | "edit" | "cancelEdit" | "erase" | "eraseChat"> & {
  stop: (turnId: string) => void;
};

function createRequests({ state, change }: Store, notice: Actions["notice"]): Requests {
  /** A double click counts once. */
  const pressed = new Set<string>();

  /** Resolves to true if the request succeeded. Otherwise the person has seen a notice. */
  async function request(path: string, body: object): Promise<boolean> {
    try {
      await postJson(path, { nonce: createNonce(), ...body });
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

  async function changeSchedule(message: MessageRow, button: Button): Promise<void> {
    const { turnId } = button;
    async function send(given: Readonly<Record<string, string>>): Promise<FormProblem | undefined> {
      const fields = { time: given["time"] ?? "", task: given["task"] ?? "" };
      const body: ActionBody = { nonce: createNonce(), action: "reschedule", turnId, fields };
      return postJson(`/local/messages/${message.id}/action`, body).then(() => undefined, toProblem);
    }

    try {
      const path = `/local/schedules/${encodeURIComponent(turnId)}?${new URLSearchParams({ chatId: message.chatId })}`;
      const values = (await getJson(path)) as ScheduleFields | null;
      if (values === null) return await press(message, button);
      const fields = [
        { name: "time", label: "When", value: values.time, rows: 1 },
        { name: "task", label: "What I should do then", value: values.task, rows: 4 },
      ];
      const hint = "I'll show you what I understood. Nothing changes until you confirm it.";
      askForTexts({ title: "Schedule", fields, hint, verb: "Continue" }, send);
    } catch (error) {
      notice(describeProblem(error));
    }
  }

  return {
    changeSchedule,
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

/** Hides a message or a chat at once. Deletes it when undo is no longer possible, or when the page closes. */
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
    for (const path of waiting.keys()) postLast(path, { nonce: createNonce() });
    waiting.clear();
  });

  return {
    erase(message: MessageRow): void {
      const { id } = message;
      const path = `/local/messages/${id}/delete`;
      change(() => void state.leaving.add(id));
      // Deletes the message now instead of after the time for undo, because its answer would keep growing.
      if (stoppableAt(state, message.chatId) !== undefined) return void send(path, id);
      leave(path, id, "I deleted the message.", () => {});
    },
    eraseChat(id: string): void {
      const { chatId } = state;
      change(() => void state.leaving.add(id));
      leave(`/local/chats/${id}/delete`, id, "I deleted the chat.", () => go(chatId));
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
  const { chatId, picture } = pending;
  const own = picture === undefined ? pending.text : (readPrompt(pending.text) ?? "");
  const text = [own, writingAt(state, chatId).text].filter((each) => each !== "").join("\n\n");
  write(chatId, { text, uploads: pending.files.map(toUpload), isWaiting: false, picture, aside: undefined });
  sending.discard(nonce);
}

export interface PictureActions {
  openPicture: (chatId: string) => void;
  /** Closes the form if it is open. Restores the text from before the person started to edit an image. */
  closePicture: (chatId: string) => boolean;
  choose: (chatId: string, changes: Partial<PictureForm>) => void;
  /** Opens the form with an image's request, and with the image as the first reference. */
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
    openPicture(chatId) {
      // Reloads the models each time, because they can change. Until they arrive, the form offers the known models.
      void loadMenu();
      const { text, picture = state.lastPicture ?? NO_CHOICE } = writingAt(state, chatId);
      write(chatId, { text: readPrompt(text) ?? text, picture });
      focusComposer();
    },
    closePicture(chatId) {
      const { picture, aside } = writingAt(state, chatId);
      if (picture === undefined) return false;
      write(chatId, { ...aside, picture: undefined, aside: undefined });
      focusComposer();
      return true;
    },
    choose(chatId, changes) {
      const { picture = NO_CHOICE } = writingAt(state, chatId);
      write(chatId, { picture: { ...picture, ...changes } });
    },
    async editPicture({ chatId, files }, pictureId) {
      const file = files.find(({ isImage }) => isImage);
      if (file === undefined) return;
      void loadMenu();
      try {
        const path = `/local/pictures/${encodeURIComponent(pictureId)}?${new URLSearchParams({ chatId })}`;
        const { prompt, options } = (await getJson(path)) as DescribedPicture;
        const { text, uploads, aside = { text, uploads } } = writingAt(state, chatId);
        const picture = toForm(options, { id: pictureId, file });
        write(chatId, { text: prompt, uploads: [], isWaiting: false, picture, aside });
        focusComposer();
      } catch (error) {
        notice(describeProblem(error));
      }
    },
    uncover: (fileId) => change(() => void (state.uncovered = new Set(state.uncovered).add(fileId))),
  };
}

function focusComposer(): void {
  requestAnimationFrame(() => {
    const field = document.querySelector<HTMLTextAreaElement>(".composer textarea");
    field?.focus();
    field?.setSelectionRange(field.value.length, field.value.length);
  });
}
