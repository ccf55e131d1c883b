import { NO_CHOICE, type PictureForm, readPrompt, toForm } from "./picture-form.ts";
import { describeProblem, getJson } from "./requests.ts";
import { type Place, placeKey, type Store, writingAt } from "./state.ts";
import type { MessageRow, PictureMenu, PictureWish } from "./wire.ts";

export interface PictureActions {
  /** Opens the form; what stands in the composer then says what to draw. */
  openPicture: (place: Place) => void;
  /** Closes the form, if it is open, and brings back what stood there before a picture was to be changed. */
  closePicture: (place: Place) => boolean;
  choose: (place: Place, changes: Partial<PictureForm>) => void;
  /** Opens the form as a picture was asked for, with the picture as the first reference. */
  editPicture: (message: MessageRow, pictureId: string) => Promise<void>;
  uncover: (fileId: string) => void;
}

export function createPictureActions({ state, change }: Store, notice: (text: string) => void): PictureActions {
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
      const writing = writingAt(state, place);
      const text = readPrompt(writing.text) ?? writing.text;
      const picture = writing.picture ?? state.lastPicture ?? NO_CHOICE;
      change(() => void state.writing.set(placeKey(place), { ...writing, text, picture }));
      focusAt(place);
    },
    closePicture(place) {
      const { picture, aside, ...writing } = writingAt(state, place);
      if (picture === undefined) return false;
      const closed = { ...writing, ...aside, picture: undefined, aside: undefined };
      change(() => void state.writing.set(placeKey(place), closed));
      focusAt(place);
      return true;
    },
    choose(place, changes) {
      const writing = writingAt(state, place);
      const picture = { ...(writing.picture ?? NO_CHOICE), ...changes };
      change(() => void state.writing.set(placeKey(place), { ...writing, picture }));
    },
    async editPicture({ channelId, threadId, files }, pictureId) {
      const file = files.find(({ isImage }) => isImage);
      if (file === undefined) return;
      void loadMenu();
      try {
        const by = new URLSearchParams({ authorId: state.speakerId, channelId });
        const path = `/local/pictures/${encodeURIComponent(pictureId)}?${by}`;
        const { prompt, options } = (await getJson(path)) as PictureWish;
        const place = { channelId, threadId };
        const { text, uploads, aside = { text, uploads } } = writingAt(state, place);
        const picture = toForm(options, { id: pictureId, file });
        const writing = { text: prompt, uploads: [], isWaiting: false, picture, aside };
        change(() => void state.writing.set(placeKey(place), writing));
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
