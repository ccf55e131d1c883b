import type { Finding } from "./finding.ts";

/** One configuration variable, as a person fills it in. */
export interface SetupField {
  /** The variable's name. */
  name: string;
  label: string;
  /** Explains where people find the value. */
  hint: string;
  kind: "address" | "secret" | "model";
  /** The variable with the address that receives this secret: a new address needs a new secret. */
  sentTo?: string;
  /** The field's initial value. */
  value?: string;
  isOptional?: boolean;
  /** The guide depends on it, so the form shows it first. */
  isFirst?: boolean;
}

/** One task on another site, with a link to it. */
export interface SetupTask {
  text: string;
  link?: { label: string; url: string };
  /** Replaces the text and the address if the link is too long for a terminal. */
  byHand?: { text: string; url: string; file: PasteFile };
}

/** A file whose text a person pastes somewhere. */
export interface PasteFile {
  path: string;
  /** The text to paste, if it differs from the file's text. */
  text?: string;
}

export interface SetupWay {
  id: string;
  label: string;
  tasks: readonly SetupTask[];
  fields: readonly SetupField[];
}

export interface SetupStep {
  id: string;
  name: string;
  /** The label of the button that starts the step. */
  title: string;
  summary: string;
  ways: readonly SetupWay[];
  /** Says what to write where once Palaver runs with these values; absent if they connect no new platform. */
  greeting?: string;
}

/** Values by their variables. Empty ones count as unset. */
export type SetupValues = Readonly<Record<string, string>>;

/** The lines to save, or the reasons why they would not start the service. */
export type EnvFile = { text: string; problems: readonly string[] };

/** Leads a person to a working configuration, in the same way on the page and in the terminal. Stores nothing. */
export interface Setup {
  /** True if the next start would use a secret of a step, or if that cannot be read. */
  isConfigured(): boolean;
  /** The steps to go through; some depend on values of earlier ones. */
  steps(values: SetupValues): readonly SetupStep[];
  /**
   * Checks the values of one step for real; if fields are empty, it names them instead. Rejects only with
   * `signal.reason`. Findings use the form's names for the fields.
   */
  check(stepId: string, values: SetupValues, signal: AbortSignal): Promise<Finding[]>;
  /** The models of the gateway that the values name, or findings if it does not list them. */
  listModels(values: SetupValues, signal: AbortSignal): Promise<{ models: readonly string[]; findings: Finding[] }>;
  /** The file to write; undefined if it cannot be written. */
  target(): string | undefined;
  toEnvFile(values: SetupValues): EnvFile;
  /** Writes the values into the file, readable only by its owner. Returns the reasons if nothing was written. */
  save(values: SetupValues): readonly string[];
}
