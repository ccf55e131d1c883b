import type { IncomingMessage, ServerResponse } from "node:http";
import type { Core } from "./core.ts";
import type { StoredFile } from "./world.ts";

/** Slack shows this page with status 200, instead of an error, if the token for a private file is wrong. */
const LOGIN_PAGE =
  "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body>Sign in to Slack</body></html>";

export interface FileRoutes {
  /** Receives the bytes of an announced upload. */
  upload(id: string, request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void>;
  /** Serves a private file, or the login page. */
  download(id: string, request: IncomingMessage, response: ServerResponse): void;
  login(response: ServerResponse): void;
  redirectToLogin(isOn: boolean): void;
}

export function createFileRoutes(core: Core): FileRoutes {
  let isRedirecting = false;

  function find(id: string): StoredFile | undefined {
    for (const { files } of core.workspaces.values()) {
      const file = files.get(id);
      if (file !== undefined) return file;
    }
    return undefined;
  }

  function login(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(LOGIN_PAGE);
  }

  return {
    async upload(id, request, response, body) {
      const file = find(id);
      const contentType = request.headers["content-type"] ?? "";
      const bytes = contentType.startsWith("multipart/form-data") ? await readPart(body, contentType) : body;
      if (file === undefined || file.isComplete || bytes?.length !== file.announcedBytes) {
        response.writeHead(400).end("The upload has not the announced length, or is unknown or complete.");
        return;
      }
      file.bytes = bytes;
      core.changes.changed();
      response.writeHead(200).end(`OK - ${bytes.length}`);
    },
    download(id, request, response) {
      const file = find(id);
      const workspace = file?.owner.workspace;
      const owners = [workspace, workspace?.organisation].filter((owner) => owner !== undefined);
      const isAllowed = owners.some(
        ({ botToken, revoked, scopes }) =>
          request.headers.authorization === `Bearer ${botToken}` && revoked === undefined && scopes.has("files:read"),
      );
      if (file === undefined || !file.isComplete || !isAllowed) {
        if (isRedirecting) response.writeHead(302, { location: `${core.origin()}/signin?redir=${id}` }).end();
        else login(response);
        return;
      }
      response.writeHead(200, { "content-type": file.mimeType, "content-length": file.bytes.length });
      response.end(request.method === "HEAD" ? undefined : file.bytes);
    },
    login,
    redirectToLogin(isOn) {
      isRedirecting = isOn;
    },
  };
}

/** Returns a form's only file, whatever the name of its field. */
async function readPart(body: Buffer, contentType: string): Promise<Uint8Array | undefined> {
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": contentType } }).formData();
  const part = [...form.values()].find((value) => typeof value !== "string");
  return part === undefined ? undefined : part.bytes();
}
