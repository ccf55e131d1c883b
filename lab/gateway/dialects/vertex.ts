// Vertex AI's OpenAI-compatible endpoint. It has no model list.
// https://cloud.google.com/vertex-ai/generative-ai/docs/migrate/openai/overview
// types: https://github.com/google-gemini/gemini-cli/issues/2282, https://github.com/QuantumNous/new-api/issues/3022
// signatures: https://github.com/earendil-works/pi/issues/6733
import { type Dialect, DRAWS_NOTHING, propertiesOf } from "../dialect.ts";
import { googleError, googlePage, refuseGoogle, requireSignatures, signFirstCall } from "./google.ts";

export const vertex: Dialect = {
  title: "Vertex AI",
  address: "https://aiplatform.googleapis.com/v1/projects/PROJECT/locations/global/endpoints/openapi",
  chatModel: "google/gemini-3-flash-preview",
  hasModelList: false,
  errorBody: googleError,
  unknownPath: googlePage,
  callFields: signFirstCall("vertex"),
  rules: [
    (request) => {
      const bad = propertiesOf(request).find(
        ({ schema }) => typeof schema["type"] !== "string" && schema["anyOf"] === undefined,
      );
      if (bad === undefined) return undefined;
      const message = `Unable to submit request because \`${bad.tool}\` functionDeclaration \`${bad.path}\` schema didn't specify the schema type field. Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling`;
      return refuseGoogle(400, message);
    },
    requireSignatures(
      "vertex",
      (tool, position) =>
        `Unable to submit request because function call \`default_api:${tool}\` in the ${position}. content block is missing a \`thought_signature\`. Learn more: https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures`,
    ),
  ],
  explained: {
    ...DRAWS_NOTHING,
    "model list": { because: "the endpoint has no model list", says: /list/i },
  },
};
