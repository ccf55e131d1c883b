/** What `npm run doctor` found out about one thing by trying it. Never holds a secret. */
export interface Finding {
  ok: boolean;
  /** One line that says what was found. */
  what: string;
  /** What to do about it; only where something is to be done. */
  fix?: string;
}
