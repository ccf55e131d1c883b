import type { Logger } from "pino";
import type { AttachmentRef } from "../../../src/adapter.ts";
import type { ImagineMenu } from "../../../src/imagine-menu.ts";
import type { SlackApi } from "../api.ts";
import type { CommandHelp, ListModels } from "../options.ts";
import type { People } from "../people.ts";
import type { Running } from "../running.ts";
import type { Body } from "../surfaces.ts";
import type { Workspace } from "../workspaces.ts";
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
