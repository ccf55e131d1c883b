import type { Logger } from "pino";
import type { CommandHelp, ImagineMenu, ListModels } from "../../../src/port/catalogue.ts";
import type { AttachmentRef } from "../../../src/port/events.ts";
import type { SlackApi } from "../api/client.ts";
import type { Body } from "../api/wire.ts";
import type { Workspace } from "../api/workspaces.ts";
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
