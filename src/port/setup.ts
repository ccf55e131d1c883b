import type { Finding } from "./finding.ts";

/** One variable of the configuration, as a person fills it in. */
export interface SetupField {
  /** The variable's name. */
  name: string;
  label: string;
  /** Says where it is found. */
  hint: string;
  kind: "address" | "secret" | "model";
  /** The variable with the address that receives this secret: a new address needs a new secret. */
  sentTo?: string;
  /** The value that the field begins with. */
  value?: string;
  isOptional?: boolean;
  /** The guide depends on it, so it is asked for before that. */
  isFirst?: boolean;
}

/** One thing to do elsewhere, and the place where it is done. */
export interface SetupTask {
  text: string;
  link?: { label: string; url: string };
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
  /** Stands on the button that begins the step. */
  title: string;
  summary: string;
  ways: readonly SetupWay[];
}

/** Values by their variables. Empty ones count as unset. */
export type SetupValues = Readonly<Record<string, string>>;

/** The lines to save, or the sentences that say why they would not start the service. */
export type EnvFile = { text: string; problems: readonly string[] };

/** Leads a person from nothing to a configuration that works: the same at the page and in the terminal. Stores nothing. */
export interface Setup {
  /** True if the next start would use a secret of a step, or if that cannot be read. */
  isConfigured(): boolean;
  /** The steps to go through; some depend on values filled in before. */
  steps(values: SetupValues): readonly SetupStep[];
  /** Tries the values of one step for real. Rejects only with `signal.reason`. */
  check(stepId: string, values: SetupValues, signal: AbortSignal): Promise<Finding[]>;
  /** The models of the gateway that the values name; with findings where it does not tell. */
  listModels(values: SetupValues, signal: AbortSignal): Promise<{ models: readonly string[]; findings: Finding[] }>;
  /** The file that would be written to; undefined where nothing can be written. */
  target(): string | undefined;
  toEnvFile(values: SetupValues): EnvFile;
  /** Writes the values into the file, readable by its owner alone. Returns the reasons if nothing was written. */
  save(values: SetupValues): readonly string[];
}
