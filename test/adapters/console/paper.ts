import type { Action } from "../../../src/port/events.ts";

export interface PrintedMessage {
  text: string;
  buttons: { action: Action; label: string }[];
  /** The paths of the message's files. */
  files: string[];
}

/** Reads the printed output. A line without the prefix of a message, a file or a button continues the message above. */
export function readPaper(paper: string): PrintedMessage[] {
  const messages: PrintedMessage[] = [];
  let ahead: PrintedMessage["buttons"] = [];
  for (const line of paper.split("\n")) {
    const last = messages.at(-1);
    const [, begun] = /^Palaver: (.*)$/.exec(line) ?? [];
    const [, changed] = /^Palaver, again: (.*)$/.exec(line) ?? [];
    const [, file] = /^ {2}\(file: (.*)\)$/.exec(line) ?? [];
    const [, action, label] = /^ {2}\[\/(\w+): (.+)\]$/.exec(line) ?? [];
    if (action !== undefined && label !== undefined) {
      const button = { action: action as Action, label };
      // The Stop button is printed above an answer that is about to grow. All other buttons are printed below their
      // answers.
      if (action === "stop") ahead.push(button);
      else last?.buttons.push(button);
    } else if (begun !== undefined) {
      messages.push({ text: begun, buttons: ahead, files: [] });
      ahead = [];
    } else if (line === "  (removed)") messages.pop();
    else if (last === undefined) continue;
    else if (changed !== undefined) Object.assign(last, { text: changed, buttons: [] });
    else if (file !== undefined) last.files.push(file);
    else last.text += `\n${line}`;
  }
  return messages.map((message) => ({ ...message, text: message.text.trimEnd() }));
}
