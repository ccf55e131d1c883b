import type { CommandHelp } from "../page/wire.ts";

/** A path or a fraction at the start of a message is no command: the name ends at a space or at the end. */
const COMMAND = /^\/([a-z][a-z0-9_-]*)(?:\s+([\s\S]*))?$/i;

export type TypedCommand =
  | { kind: "text" }
  | { kind: "command"; name: string; text: string }
  /** Looks like a command that nobody knows; `message` is for the person who typed it. */
  | { kind: "unknown"; message: string };

/** Tells a command from ordinary text. Without any known names every command is let through. */
export function readCommand(text: string, known: readonly CommandHelp[]): TypedCommand {
  const [, typed, rest = ""] = COMMAND.exec(text) ?? [];
  if (typed === undefined) return { kind: "text" };
  const name = typed.toLowerCase();
  if (known.length === 0 || known.some((command) => command.name === name)) {
    return { kind: "command", name, text: rest.trim() };
  }
  const near = known.find((command) => isNear(command.name, name));
  const hint = near === undefined ? "Type / to see the commands there are." : `Did you mean /${near.name}?`;
  return {
    kind: "unknown",
    message: `There is no command /${name}. ${hint} With a space in front it is sent as text.`,
  };
}

/** One letter added, left out, or changed, or two swapped. */
function isNear(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const [restA, restB] = [a.slice(start), b.slice(start)];
  const isSwap = restA[0] === restB[1] && restA[1] === restB[0] && restA.slice(2) === restB.slice(2);
  return isSwap || restA.slice(1) === restB.slice(1) || restA === restB.slice(1) || restA.slice(1) === restB;
}
