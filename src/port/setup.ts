import type { Finding } from "./finding.ts";

/** A configuration variable, with the text for its field in the setup form. */
export interface SetupField {
  name: string;
  label: string;
  /** Explains where people find the value. */
  hint: string;
  kind: "address" | "secret" | "model";
  /** The variable with the address that receives this secret. A new address requires a new secret. */
  sentTo?: string;
  value?: string;
  isOptional?: boolean;
  /** Set if the rest of the guide depends on this field. The form then asks for this field first. */
  isFirst?: boolean;
}

/** A task on another site, with a link to it. */
export interface SetupTask {
  text: string;
  link?: { label: string; url: string };
  /** Replaces the text and the link if the link is too long for a terminal. */
  byHand?: { text: string; url: string; file: PasteFile };
}

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
  /** Says how to write to the bot once Palaver runs with these values. Absent if they connect no new platform. */
  greeting?: string;
}

/** The values by variable. An empty value counts as unset. */
export type SetupValues = Readonly<Record<string, string>>;

/** The lines to save, or the reasons why the service would not start with them. */
export type EnvFile = { text: string; problems: readonly string[] };

/** Leads a person to a working configuration, on the page and in the terminal. Keeps no values between calls. */
export interface Setup {
  /** True if the next start would use a secret from one of the steps, or if the configuration cannot be read. */
  isConfigured(): boolean;
  /** Returns the steps. Some of them depend on values of earlier steps. */
  steps(values: SetupValues): readonly SetupStep[];
  /** Tests one step's values with real requests. Findings use the form's labels. Rejects only with `signal.reason`. */
  check(stepId: string, values: SetupValues, signal: AbortSignal): Promise<Finding[]>;
  /** Lists the models of the gateway that the values name. If the gateway does not list them, returns findings. */
  listModels(values: SetupValues, signal: AbortSignal): Promise<{ models: readonly string[]; findings: Finding[] }>;
  /** Returns the file that `save` writes; undefined if it cannot be written. */
  target(): string | undefined;
  toEnvFile(values: SetupValues): EnvFile;
  /** Writes the values into the file, which only its owner can read. Returns the reasons if nothing was written. */
  save(values: SetupValues): readonly string[];
}
