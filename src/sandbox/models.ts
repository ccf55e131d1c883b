import { ACCOUNTS, type Account, MODELS, readAccount, readListAccount, requireModel } from "./access.ts";
import { type Handler, sendJson } from "./exchange.ts";

/** The creation time of all models, in Unix seconds. It never changes, so that lists compare equal. */
const CREATED_AT_SECONDS = 1_767_225_600;

/** `GET /v1/models`: the models that this key can use. */
export const listModels: Handler = async ({ request, response }) => {
  const account = readAccount(request);
  sendJson(response, { object: "list", data: account.models.map(toEntry) });
};

/** `GET /v1/models/{model}`: one of the key's models. */
export const showModel: Handler = async ({ request, response, parameters: [id = ""] }) => {
  const account = readAccount(request);
  const kind = MODELS.find((model) => model.id === id)?.kind ?? "chat";
  sendJson(response, toEntry(requireModel(account, id, kind).id));
};

/** `GET /v1beta/models`: the same models in Google's form, on one page. */
export const listGoogleModels: Handler = async ({ request, response }) => {
  sendJson(response, { models: readListAccount(request).models.map(toGoogleEntry) });
};

/** `GET /v1beta/models/{model}`: one of the key's models in Google's form. */
export const showGoogleModel: Handler = async ({ request, response, parameters: [id = ""] }) => {
  const account = readListAccount(request);
  const kind = MODELS.find((model) => model.id === id)?.kind ?? "image";
  sendJson(response, toGoogleEntry(requireModel(account, id, kind).id));
};

/** https://ai.google.dev/api/models#Model. Chat models have no method of Google's interface. */
function toGoogleEntry(id: string) {
  const isDrawing = MODELS.some((model) => model.id === id && model.kind === "image");
  const supportedGenerationMethods = isDrawing ? ["generateContent", "streamGenerateContent"] : [];
  return { name: `models/${id}`, version: "1", displayName: id, supportedGenerationMethods };
}

function toEntry(id: string): { id: string; object: "model"; created: number; owned_by: string } {
  return { id, object: "model", created: CREATED_AT_SECONDS, owned_by: "sandbox" };
}

/** Describes each key in one line for the person who starts the sandbox. The keys are public. */
export function describeAccounts(): string[] {
  return ACCOUNTS.map((account) => `${account.key}  ${describeAccount(account)}`);
}

function describeAccount({ models, imageByHeaderOnly }: Account): string {
  return imageByHeaderOnly ? `${models.join(", ")} (images only with x-sandbox-api-key)` : models.join(", ");
}
