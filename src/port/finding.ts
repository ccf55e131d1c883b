/** A finding of `npm run doctor` about one thing, made by trying it. Never holds a secret. */
export interface Finding {
  ok: boolean;
  /** One line that says what was found. */
  what: string;
  /** Says how to fix it; only if something is wrong. */
  fix?: string;
  /** A link that a page shows as a button. */
  link?: { label: string; url: string };
}
