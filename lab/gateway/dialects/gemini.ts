// Gemini's OpenAI-compatible API.
// https://ai.google.dev/gemini-api/docs/openai, https://ai.google.dev/gemini-api/docs/thought-signatures
// signatures: https://github.com/Gitlawb/openclaude/issues/67, https://github.com/tinyhumansai/openhuman/issues/3548
// list of types: https://github.com/zed-industries/zed/issues/44875, https://github.com/taylorwilsdon/google_workspace_mcp/issues/1099
// unknown fields: https://github.com/n4ze3m/page-assist/issues/418, https://github.com/Vali-98/ChatterUI/issues/227
import { type Dialect, propertiesOf, refuseFields } from "../dialect.ts";
import { googleError, googlePage, refuseGoogle, requireSignatures, signFirstCall } from "./google.ts";

const UNKNOWN = ["frequency_penalty", "presence_penalty", "seed", "logit_bias"];

export const gemini: Dialect = {
  title: "Gemini",
  address: "https://generativelanguage.googleapis.com/v1beta/openai",
  chatModel: "gemini-3-flash-preview",
  imageModel: "gemini-2.5-flash-image",
  draws: { by: "images", hasGenerateContent: true },
  hasModelList: true,
  errorBody: googleError,
  unknownPath: googlePage,
  noCredit: refuseGoogle(
    429,
    "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing.",
  ),
  callFields: signFirstCall("google"),
  rules: [
    refuseFields(
      (name) => UNKNOWN.includes(name),
      (name) => refuseGoogle(400, `Invalid JSON payload received. Unknown name "${name}": Cannot find field.`),
    ),
    (request) => {
      const bad = propertiesOf(request).filter(({ schema }) => Array.isArray(schema["type"]));
      if (bad.length === 0) return undefined;
      const lines = bad.map(
        ({ toolIndex, path }) =>
          `Invalid JSON payload received. Unknown name "type" at 'tools[0].function_declarations[${toolIndex}].${path}': Proto field is not repeating, cannot start list.`,
      );
      return refuseGoogle(400, lines.join("\n"));
    },
    requireSignatures(
      "google",
      (tool, position) =>
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${tool}\` , position ${position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
    ),
  ],
};
