/** The model writes this if it has nothing to say. */
const NOTHING = "NOTHING_TO_SAY";

/** Tells the model that no person is waiting for the answer. `when` names the time of the run. */
export function toRunPrompt(when: string): string {
  return `The request below was scheduled by its author for this time: it is now ${when}. Carry it out now and ask nothing back, because no one is waiting. If it is a reminder, write the reminder itself. If the request asks you to speak only in some case, or only if there is something to say, and there is not, answer with exactly ${NOTHING} and nothing else.`;
}

/** Holds the model's text back until its end, because only then is it clear whether there is anything to say. */
export interface HeldText {
  write(text: string): void;
  /** Call this after the last text. Passes the text on and returns true, unless the model had nothing to say. */
  end(): boolean;
  /** Passes on the text of an answer that broke off. */
  release(): void;
}

export function holdText(onText: (text: string) => void): HeldText {
  let held = "";
  const release = () => {
    if (held !== "") onText(held);
    held = "";
  };
  return {
    write: (text) => void (held += text),
    release,
    end() {
      // Models write the word in bold, or explain why they wrote it.
      if (held.trim() === "" || held.includes(NOTHING)) return false;
      release();
      return true;
    },
  };
}
