/** One result of a check in `npm run doctor`. Never contains a secret. */
export interface Finding {
  ok: boolean;
  /** One line that says what the check found. */
  what: string;
  /** Says how to fix it. Absent if `ok`. */
  fix?: string;
  /** A link that a page shows as a button. */
  link?: { label: string; url: string };
}
