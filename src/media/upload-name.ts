const MAX_CHARS = 100;

/** Keeps a name's last 100 characters, without folders, control and `forbidden` characters; "file" if none remain. */
export function toUploadName(name: string, forbidden: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const visible = Array.from(last.replace(/[\p{Cc}\p{Cf}\p{Cs}]+/gu, "")).filter(
    (letter) => !forbidden.includes(letter),
  );
  const letters = Array.from(visible.join("").trim());
  return letters.length === 0 ? "file" : letters.slice(-MAX_CHARS).join("");
}
