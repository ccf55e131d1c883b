/** A finding of `npm run doctor` about one thing, made by trying it. Never holds a secret. */
export interface Finding {
  ok: boolean;
  /** One line that says what was found. */
  what: string;
  /** Says what to do about it; only where something is to be done. */
  fix?: string;
}
