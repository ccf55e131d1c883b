import type { Logger } from "pino";
import type { AttachmentRef } from "../../../src/port/adapter.ts";
import type { ImagineMenu } from "../../../src/port/catalogue.ts";
import type { SlackApi } from "../api/client.ts";
import type { Workspace } from "../api/workspaces.ts";
import type { Body } from "../listen/surfaces.ts";
import type { CommandHelp, ListModels } from "../options.ts";
import type { People } from "../people/people.ts";
import type { Running } from "../write/running.ts";
import type { Respond } from "./response-urls.ts";

/** What all surfaces work with. */
export interface SurfaceDeps {
  api: Pick<SlackApi, "call">;
  people: People;
  respond: Respond;
  toAttachments(workspace: Workspace, files: readonly Body[]): AttachmentRef[];
  /** Understood besides `/ask`. */
  commands: readonly CommandHelp[];
  listModels: ListModels;
  /** Absent: pictures are off. */
  imagine?: ImagineMenu | undefined;
  running: Pick<Running, "find">;
  log: Logger;
  /** Unix milliseconds. */
  now(): number;
}
