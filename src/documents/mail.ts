import PostalMime, { type Address } from "postal-mime";
import { DocumentError, type DocumentText } from "./document.ts";
import { readMarkup } from "./markup.ts";

const MAX_NESTING = 32;
const MAX_PEOPLE = 20;

/** Reads an email's main headers, its text and the names of its attachments. */
export async function readMail(bytes: Uint8Array, maxChars: number): Promise<DocumentText> {
  const mail = await PostalMime.parse(bytes, { maxNestingDepth: MAX_NESTING }).catch((cause: unknown) => {
    throw new DocumentError("is not a readable email; paste its text instead", { cause });
  });
  const names = mail.attachments.map(({ filename }) => filename ?? "unnamed");
  const heads = [
    ["From", toPeople(mail.from === undefined ? [] : [mail.from])],
    ["To", toPeople(mail.to ?? [])],
    ["Cc", toPeople(mail.cc ?? [])],
    ["Date", mail.date ?? ""],
    ["Subject", mail.subject ?? ""],
    ["Attached", names.slice(0, MAX_PEOPLE).join(", ")],
  ].flatMap(([name, value]) => (value === "" ? [] : [`${name}: ${value}`]));
  const plain = mail.text?.trim() ?? "";
  const body = plain !== "" || mail.html === undefined ? { text: plain } : readMarkup(mail.html, maxChars);
  const leftOut = body.leftOut ?? (names.length > 0 ? "its attachments were not read" : undefined);
  return { text: `${heads.join("\n")}\n\n${body.text}`, ...(leftOut !== undefined && { leftOut }) };
}

function toPeople(people: readonly Address[]): string {
  const names = people
    .slice(0, MAX_PEOPLE)
    .map(({ name, address }) => (address ? `${name} <${address}>` : name).trim());
  return names.join(", ") + (people.length > MAX_PEOPLE ? ` and ${people.length - MAX_PEOPLE} more` : "");
}
